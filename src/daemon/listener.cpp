#include "daemon/listener.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/units.hpp"
#include "daemon/limits.hpp"
#include "daemon/log.hpp"
#include "daemon/pass_rights.hpp"
#include "wire/codec.hpp"

namespace wc::daemon {
namespace {

using namespace std::chrono_literals;

// Nothing of ours ends this shortage, so nothing of ours tells when it has ended.
constexpr auto kPause = 100ms;

Fd open_spare() { return Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

void refuse(FdView connection, const Error& error) {
  const auto bytes = wire::encode(0, wire::to_failure(error));
  // A new connection has room for one packet; who is gone already needs none.
  if (bytes) static_cast<void>(wire::send_packet(connection, *bytes));
}

}  // namespace

Result<std::unique_ptr<Listener>> Listener::create(EventLoop& loop, Fd socket, Options options) {
  auto listener = std::make_unique<Listener>(Made{}, loop, std::move(socket), std::move(options));
  listener->spare_ = open_spare();
  if (!listener->spare_) return fail_errno("open \"/dev/null\"");
  let_descriptors_in(listener->socket_, false);
  listener->watch_ = TRY(loop.watch(listener->socket_, EPOLLIN, *listener));
  return listener;
}

void Listener::on_ready(std::uint32_t) {
  for (std::size_t count = 0; count < kAcceptsPerTurn; ++count) {
    if (!accept_one()) return;
  }
}

bool Listener::accept_one() {
  Fd connection(::accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (connection) {
    take_in(std::move(connection));
    return true;
  }
  const int number = errno;
  switch (number) {
    case EAGAIN:
      return false;
    case EINTR:
    case ECONNABORTED:
      return true;
    case EMFILE:
    case ENFILE:
      accept_without_room(number);
      return resume_.armed() == false;
    default:
      report(Level::error, "accept4: {}", errno_name(number));
      pause();
      return false;
  }
}

void Listener::accept_without_room(int number) {
  report(Level::warning, "accept4: {}: a connection is refused", errno_name(number));
  spare_.reset();
  {
    const Fd connection(::accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (connection) {
      refuse(connection,
             Error{Code::exhausted, "the daemon has no descriptor left", errno_name(number)});
    }
  }
  spare_ = open_spare();
  if (!spare_) pause();
}

void Listener::take_in(Fd connection) {
  const auto peer = options_.policy.identify(connection);
  if (!peer) return refuse(connection, peer.error());
  if (!options_.policy.may_connect(*peer)) {
    report(Level::warning, "refuses user {} (pid {})", peer->uid, peer->pid);
    return refuse(
        connection,
        Error{Code::denied,
              format("user {} may not use this daemon: its own user and root may, and those "
                     "that serve --allow-read or --allow-publish names",
                     peer->uid),
              {}});
  }
  if (options_.connections() >= options_.max_connections) {
    report(Level::warning, "refuses a connection: {} are open",
           format_count(options_.max_connections));
    return refuse(connection, Error{Code::exhausted,
                                    format("the daemon serves {} connections and no more",
                                           format_count(options_.max_connections)),
                                    {}});
  }
  const auto admitted = options_.admit(std::move(connection), *peer);
  if (!admitted) report(Level::error, "cannot serve a connection: {}", admitted.error().message);
}

void Listener::pause() {
  watch_.set(0);
  resume_ = loop_.at(Clock::now() + kPause, [this] {
    if (!spare_) spare_ = open_spare();
    if (spare_) return watch_.set(EPOLLIN);
    pause();
  });
}

}  // namespace wc::daemon
