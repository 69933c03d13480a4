#include "daemon/listener.hpp"

#include <array>
#include <optional>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/log.hpp"
#include "daemon/runtime_dir.hpp"
#include "tests/support/raw_client.hpp"
#include "tests/support/temp_folder.hpp"

namespace wc::daemon {
namespace {

using namespace std::chrono_literals;
using support::RawClient;
using support::Reply;

class ListenerTest : public ::testing::Test {
 protected:
  // Whoever is let in is kept.
  void start(uid_t own) {
    start_log({FdView(2), Level::error, false});
    loop_.emplace(std::move(*EventLoop::create()));
    auto directory = RuntimeDir::open({folder_.path() / "run" / "socket", {}});
    ASSERT_TRUE(directory);
    auto socket = directory->listen(64);
    ASSERT_TRUE(socket);
    Listener::Options options;
    options.policy = AccessPolicy(own);
    options.max_connections = 100;
    options.connections = [this] { return admitted_.size(); };
    options.admit = [this](Fd connection, const wire::Peer&) -> Result<> {
      admitted_.push_back(std::move(connection));
      return {};
    };
    auto listener = Listener::create(*loop_, std::move(*socket), std::move(options));
    ASSERT_TRUE(listener);
    listener_ = std::move(*listener);
  }
  void turn_for(std::chrono::milliseconds time) {
    auto timer = loop_->at(Clock::now() + time, [this] { loop_->stop(); });
    ASSERT_TRUE(loop_->run());
  }
  RawClient connect() { return RawClient(folder_.path() / "run" / "socket"); }

  static Code refusal(RawClient& client) {
    const Reply reply = client.receive();
    EXPECT_EQ(reply.kind, Reply::Kind::message);
    EXPECT_EQ(reply.request, 0U);
    const auto words = reply.as<wire::fb::DoneT>();
    EXPECT_EQ(client.receive().kind, Reply::Kind::end);
    return words ? Code::ok : words.error().code;
  }

  support::TempFolder folder_;
  std::optional<EventLoop> loop_;
  std::unique_ptr<Listener> listener_;
  std::vector<Fd> admitted_;
};

TEST_F(ListenerTest, ItsOwnUserIsLetIn) {
  start(::geteuid());
  RawClient client = connect();
  turn_for(20ms);
  EXPECT_EQ(admitted_.size(), 1U);
}

TEST_F(ListenerTest, AnotherUserIsRefusedBeforeAByteIsRead) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  start(12345);
  ASSERT_EQ(::chmod((folder_.path() / "run" / "socket").c_str(), 0777), 0);
  ASSERT_EQ(::chmod((folder_.path() / "run").c_str(), 0755), 0);
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
  ASSERT_EQ(::seteuid(54321), 0);
  RawClient client = connect();
  ASSERT_EQ(::seteuid(0), 0);
  ASSERT_TRUE(client.connected());
  turn_for(20ms);
  EXPECT_EQ(admitted_.size(), 0U);
  EXPECT_EQ(refusal(client), Code::denied);
}

TEST_F(ListenerTest, WithoutADescriptorLeftConnectionsAreToldAndTheLoopDoesNotSpin) {
  start(::geteuid());
  std::vector<RawClient> clients;
  for (int count = 0; count < 5; ++count) clients.push_back(connect());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const Fd next(::dup(0));  // the lowest free number: none at or above it may be used
  const rlimit full{static_cast<rlim_t>(next.get()), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &full), 0);
  rusage start_usage{};
  ::getrusage(RUSAGE_SELF, &start_usage);
  turn_for(200ms);
  rusage end_usage{};
  ::getrusage(RUSAGE_SELF, &end_usage);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(admitted_.size(), 0U);
  for (RawClient& client : clients) EXPECT_EQ(refusal(client), Code::exhausted);
  const auto cpu_us = (end_usage.ru_utime.tv_sec - start_usage.ru_utime.tv_sec) * 1'000'000 +
                      end_usage.ru_utime.tv_usec - start_usage.ru_utime.tv_usec;
  EXPECT_LT(cpu_us, 50'000);
  RawClient after = connect();
  turn_for(20ms);
  EXPECT_EQ(admitted_.size(), 1U);
}

}  // namespace
}  // namespace wc::daemon
