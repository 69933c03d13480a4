#include "client/connection.hpp"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/units.hpp"
#include "client/fake_daemon_test.hpp"
#include "client/operations.hpp"

namespace wc::client {
namespace {

using namespace std::chrono_literals;
using namespace wire::fb;
using testing::AllOf;
using testing::HasSubstr;

TEST(ConnectionTest, GreetsAndLearnsWhoServes) {
  HelloT heard;
  auto daemon = std::make_unique<FakeDaemon>([&](FakePeer& peer) {
    heard = peer.greet();
    EXPECT_EQ(peer.receive(), nullptr);
  });
  auto options = daemon->options();
  options.label = "engine 7";
  {
    const auto connection = Connection::connect(options);
    ASSERT_TRUE(connection) << connection.error().message;
    EXPECT_EQ((*connection)->daemon().epoch, kEpoch);
    EXPECT_EQ((*connection)->daemon().software, "fake 0");
    EXPECT_EQ((*connection)->daemon().socket, daemon->socket_path());
    EXPECT_EQ((*connection)->daemon().pid, 4242);
    EXPECT_EQ((*connection)->daemon().protocol, 1);
  }
  daemon.reset();
  EXPECT_EQ(heard.label, "engine 7");
  EXPECT_EQ(heard.min_version, wire::kMinVersion);
  EXPECT_EQ(heard.max_version, wire::kMaxVersion);
}

TEST(ConnectionTest, NobodyThereTellsEachPathAndHowToStartADaemon) {
  const support::TempFolder folder;
  ConnectOptions options;
  options.environment.socket.clear();
  options.environment.runtime_dir = folder / "run";
  options.environment.system_socket = folder / "system/socket";
  const auto connection = Connection::connect(options);
  expect_error(connection, Code::disconnected, "weightcache serve --detach");
  EXPECT_THAT(connection.error().message,
              AllOf(HasSubstr(folder / "run/weightcache"), HasSubstr(folder / "system/socket"),
                    HasSubstr("No such file or directory")));
  EXPECT_EQ(connection.error().origin, "ENOENT");
}

TEST(ConnectionTest, SocketOfADeadDaemonIsDisconnected) {
  const support::TempFolder folder;
  {
    const auto place = SocketPlace::open(folder / "socket", ::geteuid(), {});
    const Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&place->address()),
                     sizeof place->address()),
              0);
  }
  ConnectOptions options;
  options.socket = folder / "socket";
  expect_error(Connection::connect(options), Code::disconnected, "Connection refused");
}

TEST(ConnectionTest, SecondPathServesWhereTheFirstDoesNot) {
  FakeDaemon daemon([](FakePeer& peer) {
    peer.greet();
    peer.receive();
  });
  const support::TempFolder folder;
  ConnectOptions options;
  options.environment.socket.clear();
  options.environment.runtime_dir = folder.path().string();
  options.environment.system_socket = daemon.socket_path();
  // Neither a missing directory nor one that anybody made to stand in the way keeps it from
  // serving.
  ASSERT_TRUE(Connection::connect(options));
  std::filesystem::create_directory(folder / "weightcache");
  ASSERT_EQ(::chmod((folder / "weightcache").c_str(), 0777), 0);
  ASSERT_TRUE(Connection::connect(options));
  options.environment.system_socket = folder / "nowhere/socket";
  expect_error(Connection::connect(options), Code::denied, "others than its owner can write it");
}

TEST(ConnectionTest, DirectoryThatOthersCanWriteIsDenied) {
  FakeDaemon daemon([](FakePeer& peer) { peer.receive(); });
  const auto folder = std::filesystem::path(daemon.socket_path()).parent_path();
  ASSERT_EQ(::chmod(folder.c_str(), 0777), 0);
  expect_error(Connection::connect(daemon.options()), Code::denied, "mode 777");
}

TEST(ConnectionTest, ListenerOfSomebodyElseIsDeniedBeforeAWordIsSaid) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can listen as somebody else";
  const support::TempFolder folder;
  const auto place = SocketPlace::open(folder / "socket", 0, {});
  Fd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&place->address()),
                   sizeof place->address()),
            0);
  ASSERT_EQ(::seteuid(4321), 0);
  const int listening = ::listen(listener.get(), 4);
  ASSERT_EQ(::seteuid(0), 0);
  ASSERT_EQ(listening, 0);
  ConnectOptions options;
  options.socket = folder / "socket";
  expect_error(Connection::connect(options), Code::denied, "runs as uid 4321");
  const Fd accepted(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  char byte = 0;
  EXPECT_EQ(::recv(accepted.get(), &byte, 1, 0), 0) << "the client spoke to a stranger";
  options.trusted_uids = {4321};
  options.timeout = 50ms;
  expect_error(Connection::connect(options), Code::timed_out, "Hello: no answer within 50.0 ms");
}

TEST(ConnectionTest, VersionOutsideTheRangeIsRefusedByEitherSide) {
  FakeDaemon refusing([](FakePeer& peer) {
    std::uint64_t request = 0;
    peer.expect<HelloT>(request);
    peer.fail(request, Code::version, "this daemon speaks protocol 4 to 6, the client 1 to 1");
  });
  expect_error(Connection::connect(refusing.options()), Code::version, "speaks protocol 4 to 6");

  FakeDaemon later([](FakePeer& peer) {
    std::uint64_t request = 0;
    peer.expect<HelloT>(request);
    WelcomeT welcome;
    welcome.version = 9;
    peer.send(request, welcome);
  });
  expect_error(Connection::connect(later.options()), Code::version, "the other 9 to 9");
}

TEST(ConnectionTest, GarbageInsteadOfAWelcomeIsCorrupt) {
  FakeDaemon daemon([](FakePeer& peer) {
    peer.receive();
    peer.send_raw(wire::Bytes(100, std::byte{'x'}));
    peer.receive();
  });
  expect_error(Connection::connect(daemon.options()), Code::corrupt, "no message of this protocol");
}

TEST(ConnectionTest, SilentDaemonTimesOut) {
  FakeDaemon daemon([](FakePeer& peer) {
    while (peer.receive() != nullptr) continue;
  });
  auto options = daemon.options();
  options.timeout = 30ms;
  expect_error(Connection::connect(options), Code::timed_out, "no answer within");
}

TEST(ConnectionTest, FullBacklogTimesOutAndCanBeCancelled) {
  const support::TempFolder folder;
  const auto place = SocketPlace::open(folder / "socket", ::geteuid(), {});
  const Fd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const auto* address = reinterpret_cast<const sockaddr*>(&place->address());
  ASSERT_EQ(::bind(listener.get(), address, sizeof place->address()), 0);
  ASSERT_EQ(::listen(listener.get(), 0), 0);
  const Fd filler(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(filler.get(), address, sizeof place->address()), 0);
  ConnectOptions options;
  options.socket = folder / "socket";
  options.timeout = 30ms;
  expect_error(Connection::connect(options), Code::timed_out, "connect: no answer within 30.0 ms");
  const auto cancellation = *Cancellation::create();
  options.timeout = 20s;
  options.cancellation = cancellation.get();
  std::thread other([&] { cancellation->cancel(); });
  expect_error(Connection::connect(options), Code::cancelled, "cancelled");
  other.join();
}

TEST(ConnectionTest, ForkedChildEndsNothingAndIsRefused) {
  std::atomic<bool> ended = false;
  FakeDaemon daemon([&](FakePeer& peer) {
    peer.greet();
    std::uint64_t request = 0;
    peer.expect<StatusT>(request);
    peer.send(request, StatusReportT{});
    EXPECT_EQ(peer.receive(), nullptr);
    ended = true;
  });
  auto connection = daemon.connect();
  int pipe_ends[2] = {};
  ASSERT_EQ(::pipe(pipe_ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto refused = status(*connection);
    const bool right = !refused && refused.error().code == Code::invalid_argument &&
                       refused.error().message.find("forked child") != std::string::npos;
    connection.reset();
    char byte = 0;
    [[maybe_unused]] const auto count = ::read(pipe_ends[0], &byte, 1);
    ::_exit(right ? 0 : 1);
  }
  // The parent's connection works while the child lives, and ends with the parent's use of it.
  EXPECT_TRUE(status(*connection));
  connection.reset();
  for (int n = 0; n < 2000 && !ended; ++n) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(ended) << "the child kept the connection open";
  ASSERT_EQ(::write(pipe_ends[1], "x", 1), 1);
  int state = 0;
  ASSERT_EQ(::waitpid(child, &state, 0), child);
  EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 0);
  const Fd read_end(pipe_ends[0]);
  const Fd write_end(pipe_ends[1]);
}

}  // namespace
}  // namespace wc::client
