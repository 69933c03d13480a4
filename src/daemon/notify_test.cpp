#include "daemon/notify.hpp"

#include <array>
#include <cstddef>
#include <cstdlib>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/support/temp_folder.hpp"

namespace wc::daemon {
namespace {

// The service manager's end.
class Manager {
 public:
  explicit Manager(std::string address) {
    socket_ = Fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    address.copy(static_cast<char*>(name.sun_path), sizeof(name.sun_path) - 1);
    if (address.front() == '@') name.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.size());
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&name), size), 0);
  }
  std::string next() {
    std::array<char, 512> text{};
    const auto got = ::recv(socket_.get(), text.data(), text.size(), 0);
    return got > 0 ? std::string(text.data(), static_cast<std::size_t>(got)) : "";
  }

 private:
  Fd socket_;
};

TEST(NotifyTest, TellsTheManagerThroughAPath) {
  const support::TempFolder folder;
  Manager manager(folder / "notify");
  ::setenv("NOTIFY_SOCKET", (folder / "notify").c_str(), 1);
  const Notifier notifier = Notifier::from_environment();
  EXPECT_EQ(::getenv("NOTIFY_SOCKET"), nullptr);
  notifier.ready("serves 3 entries");
  EXPECT_EQ(manager.next(), format("READY=1\nMAINPID={}\nSTATUS=serves 3 entries", ::getpid()));
  notifier.status("idle");
  EXPECT_EQ(manager.next(), "STATUS=idle");
  notifier.stopping();
  EXPECT_EQ(manager.next(), "STOPPING=1");
}

TEST(NotifyTest, TellsTheManagerThroughAnAbstractAddress) {
  const std::string address = format("@weightcache-notify-{}", ::getpid());
  Manager manager(address);
  Notifier(address).stopping();
  EXPECT_EQ(manager.next(), "STOPPING=1");
}

TEST(NotifyTest, WithoutAManagerNothingHappens) {
  ::unsetenv("NOTIFY_SOCKET");
  Notifier::from_environment().ready("alone");
  Notifier("/nonexistent/notify").stopping();
  Notifier("relative").stopping();
  Notifier(std::string(300, '/')).stopping();
}

TEST(NotifyTest, AManagerThatDoesNotReadBlocksNobody) {
  const std::string address = format("@weightcache-deaf-{}", ::getpid());
  const Manager manager(address);
  const Notifier notifier(address);
  for (int count = 0; count < 2000; ++count) notifier.status("once more");
}

}  // namespace
}  // namespace wc::daemon
