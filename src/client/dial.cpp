#include "client/dial.hpp"

#include <algorithm>
#include <chrono>

#include <sys/socket.h>

#include "wire/packet.hpp"

namespace wc::client {
namespace {

using namespace std::chrono_literals;

// A full backlog makes connect() wait in the kernel; in slices, to notice a cancellation.
constexpr std::chrono::nanoseconds kConnectSlice = 50ms;

Result<> set_send_timeout(FdView socket, std::chrono::nanoseconds time) {
  timeval limit = {};
  limit.tv_usec =
      static_cast<suseconds_t>(std::chrono::ceil<std::chrono::microseconds>(time).count());
  if (::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) != 0)
    return fail_errno("setsockopt(SO_SNDTIMEO)");
  return {};
}

Result<> connect_to(FdView socket, const sockaddr_un& address, const DialOptions& options) {
  const Patience& patience = options.patience;
  for (;;) {
    if (patience.cancelled()) return Failure(impatience(Wake::cancelled, "connect", {}));
    if (patience.over()) return Failure(impatience(Wake::timed_out, "connect", options.limit));
    TRY(set_send_timeout(
        socket, std::max<std::chrono::nanoseconds>(1ms, std::min(kConnectSlice, patience.left()))));
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
      return {};
    const int reason = errno;
    if (reason == EAGAIN || reason == EINTR) continue;
    const bool forbidden = reason == EACCES || reason == EPERM;
    if (reason == EPROTOTYPE)
      return fail_os(Code::disconnected, reason, "connect (something else listens there)");
    return fail_os(forbidden ? Code::denied : Code::disconnected, reason, "connect");
  }
}

Result<Dialed> dial_one(const std::string& path, const DialOptions& options) {
  const std::uint32_t own = options.environment.uid;
  const auto place = TRY(SocketPlace::open(path, own, options.trusted_uids));
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket) return fail_errno("socket(AF_UNIX, SOCK_SEQPACKET)");
  TRY(connect_to(socket, place.address(), options));
  const auto peer = TRY(wire::peer_of(socket));
  if (is_trusted(peer.uid, own, options.trusted_uids))
    return Dialed{std::move(socket), path, peer.uid};
  return fail(Code::denied,
              "the listener runs as uid {}, neither root nor {} nor trusted (to trust it: "
              "WEIGHTCACHE_TRUST={})",
              peer.uid, own, peer.uid);
}

bool ends_the_search(Code code) { return code != Code::disconnected && code != Code::denied; }

}  // namespace

Result<Dialed> dial(const DialOptions& options) {
  std::string reasons;
  std::string origin;
  Code worst = Code::disconnected;
  for (const std::string& path : sockets_to_try(options.socket, options.environment)) {
    auto dialed = dial_one(path, options);
    if (dialed) return dialed;
    Error error = std::move(dialed).error();
    if (ends_the_search(error.code))
      return Failure(std::move(error).within(format("cannot connect to \"{}\": ", path)));
    if (error.code == Code::denied) worst = Code::denied;
    if (origin.empty()) origin = error.origin;
    reasons += format("{}\"{}\": {}", reasons.empty() ? "" : "; ", path, error.message);
  }
  Error error;
  error.code = worst;
  error.message = worst == Code::denied
                      ? format("cannot connect to a daemon that this user trusts: {}", reasons)
                      : format(
                            "no daemon can be reached: {} (start one with \"weightcache serve "
                            "--detach\")",
                            reasons);
  error.origin = std::move(origin);
  return Failure(std::move(error));
}

}  // namespace wc::client
