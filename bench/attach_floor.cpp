#include "bench/attach_floor.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.hpp"

namespace wc::bench {
namespace {

constexpr std::size_t kBytes = std::size_t{1} << 20;

void must(bool holds) {
  if (!holds) std::abort();
}

sockaddr_un address_of(const char* name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(static_cast<char*>(address.sun_path) + 1, name, sizeof address.sun_path - 2);
  return address;  // in the abstract namespace: nothing to remove
}

[[noreturn]] void answer_forever(const Fd& listener, const std::array<int, 2>& files) {
  for (;;) {
    const Fd peer(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    std::array<char, 64> packet{};
    must(::recv(peer.get(), packet.data(), packet.size(), 0) > 0);
    iovec part{packet.data(), packet.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof files)> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof files);
    std::memcpy(CMSG_DATA(header), files.data(), sizeof files);
    must(::sendmsg(peer.get(), &message, 0) > 0);
  }
}

void one_round(const sockaddr_un& address) {
  const Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  must(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  must(::send(socket.get(), "attach", 6, 0) == 6);
  std::array<char, 64> packet{};
  std::array<int, 2> files{};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof files)> control{};
  iovec part{packet.data(), packet.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  must(::recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC) > 0);
  std::memcpy(files.data(), CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof files);
  for (const int number : files) {
    const Fd file(number);
    void* mapped = ::mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, file.get(), 0);
    must(mapped != MAP_FAILED);
    must(::munmap(mapped, kBytes) == 0);
  }
}

}  // namespace

std::chrono::nanoseconds round_trip_floor(int runs) {
  using Clock = std::chrono::steady_clock;
  const sockaddr_un address = address_of("weightcache-attach-floor");
  const Fd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  must(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  must(::listen(listener.get(), 8) == 0);
  const Fd manifest(::memfd_create("floor", MFD_CLOEXEC));
  const Fd segment(::memfd_create("floor", MFD_CLOEXEC));
  must(::ftruncate(manifest.get(), kBytes) == 0 && ::ftruncate(segment.get(), kBytes) == 0);
  const pid_t server = ::fork();
  if (server == 0) answer_forever(listener, {manifest.get(), segment.get()});

  std::vector<std::chrono::nanoseconds> times;
  for (int i = 0; i < runs; ++i) {
    const auto start = Clock::now();
    one_round(address);
    times.push_back(Clock::now() - start);
  }
  ::kill(server, SIGKILL);
  ::waitpid(server, nullptr, 0);
  std::ranges::sort(times);
  return times[times.size() / 2];
}

}  // namespace wc::bench
