// What a daemon does with connections, whatever they say.
#include "daemon/server.hpp"

#include <array>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include "tests/support/daemon_fixture.hpp"
#include "tests/support/raw_client.hpp"

namespace wc::daemon {
namespace {

using namespace std::chrono_literals;
using support::DaemonOptions;
using support::RawClient;
using support::Reply;
using ::testing::HasSubstr;

namespace fb = wire::fb;
using Clock = std::chrono::steady_clock;

class ServerTest : public support::DaemonTest {
 protected:
  // The failure that the connection ends with.
  static Error last_words(RawClient& client) {
    const Reply reply = client.receive();
    EXPECT_EQ(reply.kind, Reply::Kind::message);
    if (reply.kind != Reply::Kind::message) return {};
    const auto words = reply.as<fb::DoneT>();
    EXPECT_EQ(client.receive().kind, Reply::Kind::end);
    return words ? Error{Code::ok, {}, {}} : words.error();
  }
  bool serves() {
    RawClient client(socket());
    return client.connected() && client.hello().has_value() &&
           client.call<fb::StatusReportT>(fb::StatusT()).has_value();
  }
};

TEST_F(ServerTest, WelcomesAndTellsItsStatus) {
  start();
  RawClient client(socket());
  const auto welcome = client.hello();
  ASSERT_TRUE(welcome) << welcome.error().message;
  EXPECT_EQ(welcome->version, wire::kMaxVersion);
  EXPECT_EQ(welcome->pid, daemon().pid());
  EXPECT_EQ(welcome->epoch.size(), 32U);
  EXPECT_THAT(welcome->software, HasSubstr("weightcache 0."));
  const auto status = client.call<fb::StatusReportT>(fb::StatusT());
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(status->epoch, welcome->epoch);
  EXPECT_EQ(status->pid, daemon().pid());
  EXPECT_EQ(status->connections, 1U);
  EXPECT_EQ(status->entries, 0U);
  EXPECT_GT(status->uptime_ns, 0U);
  EXPECT_GT(status->rss_bytes, 0U);
  EXPECT_LT(status->rss_bytes, 10U << 20);
  ASSERT_EQ(status->devices.size(), 1U);
  EXPECT_EQ(status->devices[0]->device, "cpu");
  EXPECT_GT(status->devices[0]->budget_bytes, 0U);
}

TEST_F(ServerTest, ABudgetThatIsGivenIsTheBudget) {
  DaemonOptions options;
  options.serve.budgets = {{"cpu", 1 << 30}, {"GPU-1", 5}};
  start(options);
  RawClient client(socket());
  ASSERT_TRUE(client.hello());
  const auto status = client.call<fb::StatusReportT>(fb::StatusT());
  ASSERT_TRUE(status);
  ASSERT_EQ(status->devices.size(), 2U);
  for (const auto& device : status->devices) {
    EXPECT_EQ(device->budget_bytes, device->device == "cpu" ? 1U << 30 : 5U);
  }
}

TEST_F(ServerTest, VersionsThatDoNotMeetAreRefusedInWordsBothWays) {
  start();
  for (const auto& [min, max] : {std::pair{wire::kMaxVersion + 1, wire::kMaxVersion + 3},
                                 std::pair{0, wire::kMinVersion - 1}}) {
    RawClient client(socket());
    fb::HelloT hello;
    hello.min_version = static_cast<std::uint16_t>(min);
    hello.max_version = static_cast<std::uint16_t>(max);
    client.send(hello);
    EXPECT_EQ(last_words(client).code, Code::version);
  }
}

TEST_F(ServerTest, ANewerClientThatKnowsTheOldVersionIsWelcome) {
  start();
  RawClient client(socket());
  fb::HelloT hello;
  hello.min_version = wire::kMinVersion;
  hello.max_version = wire::kMaxVersion + 7;
  const auto welcome = client.call<fb::WelcomeT>(hello);
  ASSERT_TRUE(welcome) << welcome.error().message;
  EXPECT_EQ(welcome->version, wire::kMaxVersion);
}

TEST_F(ServerTest, ARequestBeforeTheHelloEndsTheConnection) {
  start();
  RawClient client(socket());
  client.send(fb::StatusT());
  EXPECT_EQ(last_words(client).code, Code::corrupt);
  EXPECT_TRUE(serves());
}

TEST_F(ServerTest, ASecondHelloEndsTheConnection) {
  start();
  RawClient client(socket());
  ASSERT_TRUE(client.hello());
  client.send(fb::HelloT());
  EXPECT_EQ(last_words(client).code, Code::corrupt);
}

TEST_F(ServerTest, GarbageEndsOnlyItsOwnConnection) {
  start();
  RawClient good(socket());
  ASSERT_TRUE(good.hello());
  std::vector<std::byte> garbage(1000, std::byte{0xa5});
  for (const std::size_t size : {1U, 4U, 8U, 60U, 1000U}) {
    RawClient client(socket());
    ASSERT_TRUE(client.send_bytes(std::span(garbage).first(size)));
    EXPECT_EQ(last_words(client).code, Code::corrupt) << size;
    RawClient greeted(socket());
    ASSERT_TRUE(greeted.hello());
    ASSERT_TRUE(greeted.send_bytes(std::span(garbage).first(size)));
    EXPECT_EQ(last_words(greeted).code, Code::corrupt) << size;
  }
  EXPECT_TRUE(good.call<fb::StatusReportT>(fb::StatusT()));
}

TEST_F(ServerTest, HalfAPacketIsGarbage) {
  start();
  const auto whole = wire::encode(1, [] {
    fb::HelloT hello;
    hello.min_version = hello.max_version = 1;
    hello.label = "half";
    return hello;
  }());
  ASSERT_TRUE(whole);
  for (std::size_t size = 1; size + 8 < whole->size(); size += 7) {  // the end may be padding
    RawClient client(socket());
    ASSERT_TRUE(client.send_bytes(std::span(*whole).first(size)));
    EXPECT_EQ(last_words(client).code, Code::corrupt) << size;
  }
  EXPECT_TRUE(serves());
}

TEST_F(ServerTest, RequestZeroAndAnswersAreNoRequests) {
  start();
  const auto zero = wire::encode(0, fb::StatusT());
  RawClient first(socket());
  ASSERT_TRUE(first.hello());
  ASSERT_TRUE(first.send_bytes(*zero));
  EXPECT_EQ(last_words(first).code, Code::corrupt);
  RawClient second(socket());
  ASSERT_TRUE(second.hello());
  second.send(fb::WelcomeT());
  EXPECT_THAT(last_words(second).message, HasSubstr("Welcome"));
}

TEST_F(ServerTest, DescriptorsThatNobodyAskedForEndTheConnection) {
  start();
  const Fd event(::eventfd(0, EFD_CLOEXEC));
  std::vector<FdView> many(200, event);
  for (const std::size_t count : {std::size_t{1}, many.size()}) {
    RawClient client(socket());
    ASSERT_TRUE(client.hello());
    // Since Linux 6.16 the kernel does not even take them.
    if (client.send(fb::StatusT(), std::span(many).first(count)) == 0) {
      EXPECT_TRUE(client.call<fb::StatusReportT>(fb::StatusT()));
    } else {
      EXPECT_EQ(last_words(client).code, Code::corrupt);
    }
  }
  EXPECT_TRUE(serves());
}

TEST_F(ServerTest, ASilentClientIsToldAndDroppedAndDelaysNobody) {
  DaemonOptions options;
  options.serve.limits.hello = 100ms;
  start(options);
  RawClient silent(socket());
  const auto begin = Clock::now();
  EXPECT_TRUE(serves());
  EXPECT_LT(Clock::now() - begin, 90ms);
  EXPECT_EQ(last_words(silent).code, Code::timed_out);
}

TEST_F(ServerTest, AQuietClientStays) {
  DaemonOptions options;
  options.serve.limits.hello = 50ms;
  options.serve.limits.unread = 50ms;
  start(options);
  RawClient client(socket());
  ASSERT_TRUE(client.hello());
  EXPECT_EQ(client.receive(300ms).kind, Reply::Kind::silence);
  EXPECT_TRUE(client.call<fb::StatusReportT>(fb::StatusT()));
}

TEST_F(ServerTest, WhoAsksAndNeverReadsIsDroppedAndDelaysNobody) {
  DaemonOptions options;
  options.serve.limits.unread = 200ms;
  start(options);
  RawClient deaf(socket());
  ASSERT_TRUE(deaf.hello());
  // Until the daemon reads no more of it: its answers fill one direction, the requests the other.
  while (deaf.send(fb::StatusT()) != 0) continue;
  EXPECT_TRUE(serves());
  EXPECT_TRUE(support::eventually([&] {
    RawClient client(socket());
    if (!client.hello()) return false;
    const auto status = client.call<fb::StatusReportT>(fb::StatusT());
    return status && status->connections == 1;
  }));
  EXPECT_THAT(log(), HasSubstr("has read nothing for 200"));
}

TEST_F(ServerTest, WhoReadsSlowlyGetsEverything) {
  start();
  RawClient slow(socket());
  ASSERT_TRUE(slow.hello());
  constexpr int kRequests = 2000;
  int sent = 0;
  int answered = 0;
  while (answered < kRequests) {
    if (sent < kRequests && slow.send(fb::StatusT()) != 0) {
      ++sent;
      continue;
    }
    ASSERT_EQ(slow.receive().kind, Reply::Kind::message) << answered;
    ++answered;
  }
}

TEST_F(ServerTest, OneConnectionTooManyIsToldSo) {
  DaemonOptions options;
  options.serve.limits.connections = 2;
  start(options);
  RawClient first(socket());
  RawClient second(socket());
  ASSERT_TRUE(first.hello());
  ASSERT_TRUE(second.hello());
  {
    RawClient third(socket());
    const Error error = last_words(third);
    EXPECT_EQ(error.code, Code::exhausted);
    EXPECT_THAT(error.message, HasSubstr("2 connections"));
  }
  second.disconnect();
  EXPECT_TRUE(support::eventually([&] { return serves(); }));
}

TEST_F(ServerTest, FewOpenFilesLimitConnectionsAndEachIsToldSo) {
  DaemonOptions options;
  options.open_files = 40;
  start(options);
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int count = 0; count < 60; ++count) {
    clients.push_back(std::make_unique<RawClient>(socket()));
  }
  int served = 0;
  int refused = 0;
  for (auto& client : clients) {
    if (client->hello()) {
      ++served;
    } else if (last_words(*client).code == Code::exhausted) {
      ++refused;
    }
  }
  EXPECT_EQ(served, 20);
  EXPECT_EQ(refused, 40);
  clients.clear();
  EXPECT_TRUE(support::eventually([&] { return serves(); }));
}

TEST_F(ServerTest, ASecondDaemonIsRefusedAndTheFirstServesOn) {
  start();
  RawClient client(socket());
  ASSERT_TRUE(client.hello());
  ServeOptions options;
  options.socket = socket();
  const auto second = serve(options);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::busy);
  EXPECT_THAT(second.error().message, HasSubstr(format("pid {}", daemon().pid())));
  EXPECT_TRUE(client.call<fb::StatusReportT>(fb::StatusT()));
  EXPECT_TRUE(serves());
}

TEST_F(ServerTest, AfterAKillTheNextDaemonServesAtTheSamePlace) {
  start();
  RawClient client(socket());
  const auto before = client.hello();
  ASSERT_TRUE(before);
  daemon().end(SIGKILL);
  EXPECT_EQ(client.receive().kind, Reply::Kind::end);
  EXPECT_TRUE(std::filesystem::is_socket(socket()));  // stale
  start();
  RawClient again(socket());
  const auto after = again.hello();
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_NE(before->epoch, after->epoch);
}

TEST_F(ServerTest, StopIsAnsweredAndEverybodySeesTheEnd) {
  start();
  RawClient client(socket());
  RawClient other(socket());
  ASSERT_TRUE(client.hello());
  ASSERT_TRUE(other.hello());
  const pid_t helper = daemon().helper();
  EXPECT_GT(helper, 0);
  const auto stopping = client.call<fb::StoppingT>(fb::StopT());
  ASSERT_TRUE(stopping) << stopping.error().message;
  EXPECT_EQ(other.receive().kind, Reply::Kind::end);
  EXPECT_EQ(daemon().wait(), 0);
  EXPECT_FALSE(std::filesystem::exists(socket()));
  EXPECT_NE(::kill(helper, 0), 0);
}

TEST_F(ServerTest, EachOfTheSignalsEndsItInOrder) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    start();
    EXPECT_EQ(daemon().end(number), 0);
    EXPECT_FALSE(std::filesystem::exists(socket()));
  }
}

TEST_F(ServerTest, AnIdleDaemonIsNeverWoken) {
  start();
  RawClient client(socket());
  ASSERT_TRUE(client.hello());
  const auto switches = [&] {
    std::ifstream file(format("/proc/{}/status", daemon().pid()));
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("voluntary_ctxt_switches")) return line;
    }
    return std::string();
  };
  ::poll(nullptr, 0, 50);
  const std::string before = switches();
  ::poll(nullptr, 0, 500);
  EXPECT_EQ(switches(), before);
}

TEST_F(ServerTest, AKilledHelperIsReplaced) {
  start();
  const pid_t helper = daemon().kill_helper();
  ASSERT_GT(helper, 0);
  EXPECT_TRUE(support::eventually([&] {
    const pid_t next = daemon().helper();
    return next != 0 && next != helper;
  }));
  EXPECT_TRUE(serves());
}

}  // namespace
}  // namespace wc::daemon
