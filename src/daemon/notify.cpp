#include "daemon/notify.hpp"

#include <cstddef>
#include <cstdlib>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/log.hpp"

namespace wc::daemon {

Notifier::Notifier(std::string_view address) {
  if (address.empty()) return;
  const bool known = address.front() == '/' || address.front() == '@';
  if (!known || address.size() >= sizeof(sockaddr_un::sun_path)) {
    report(Level::warning, "NOTIFY_SOCKET \"{}\" is no address of a unix socket", address);
    return;
  }
  socket_ = Fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket_) {
    report(Level::warning, "socket(AF_UNIX, SOCK_DGRAM): {}", errno_name(errno));
    return;
  }
  address_ = address;
  if (address_.front() == '@') address_.front() = '\0';
}

Notifier Notifier::from_environment() {
  const char* address = ::getenv("NOTIFY_SOCKET");
  if (address == nullptr) return {};
  Notifier notifier{address};
  ::unsetenv("NOTIFY_SOCKET");
  return notifier;
}

void Notifier::send(std::string_view text) const {
  if (!socket_) return;
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  address_.copy(static_cast<char*>(to.sun_path), sizeof(to.sun_path) - 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address_.size());
  const auto sent = ::sendto(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                             reinterpret_cast<const sockaddr*>(&to), size);
  if (sent < 0) report(Level::warning, "cannot notify the service manager: {}", errno_name(errno));
}

void Notifier::ready(std::string_view status) const {
  send(format("READY=1\nMAINPID={}\nSTATUS={}", ::getpid(), status));
}

void Notifier::stopping() const { send("STOPPING=1"); }

void Notifier::status(std::string_view text) const { send(format("STATUS={}", text)); }

}  // namespace wc::daemon
