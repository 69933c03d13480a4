// Daemon and supervisor killed, from outside and at each named point: what was published is there,
// with its bytes, names, generations, pins and leases, and its readers notice nothing.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "daemon/publish_case_test.hpp"

namespace wc::daemon {
namespace {

using support::attach;
using support::DaemonOptions;
using support::eventually;
using support::PublishedSample;
using support::RawClient;
using support::RawPublisher;
using support::Reply;

class RecoveryTest : public PublishCase {
 protected:
  void SetUp() override {}
  void TearDown() override {
    stays_resident();
    PublishCase::TearDown();
  }

  void start_supervised(const std::string& kill_at = {}) {
    DaemonOptions options;
    options.supervised = true;
    options.kill_at = kill_at;
    start(options);
  }

  // A greeted connection, when a daemon is there to greet it; its pid goes to `pid`.
  std::optional<RawClient> served(pid_t* pid = nullptr) {
    std::optional<RawClient> client;
    eventually([&] {
      client.emplace(socket());
      const auto welcome = client->hello();
      if (welcome && pid != nullptr) *pid = welcome->pid;
      return welcome.has_value();
    });
    return client;
  }

  // Kills the serving process; the pid of the one that serves next.
  pid_t kill_daemon() {
    pid_t before = 0;
    served(&before);
    EXPECT_EQ(::kill(before, SIGKILL), 0);
    pid_t after = before;
    EXPECT_TRUE(eventually([&] {
      served(&after);
      return after != before;
    }));
    return after;
  }

  static std::string beginning_of(FdView segment, std::size_t bytes) {
    std::string text(bytes, '\0');
    EXPECT_EQ(::pread(segment.get(), text.data(), bytes, 0), std::ssize(text));
    return text;
  }
  // Attaches and reads what the publisher wrote.
  static bool has_its_bytes(RawClient& client, const std::string& name) {
    std::vector<Fd> files;
    const auto attached = attach(client, name, &files);
    return attached && files.size() == 2 && beginning_of(files[1], name.size()) == name;
  }
};

TEST_F(RecoveryTest, WhatIsPublishedOutlivesTheDaemon) {
  start_supervised();
  {
    auto client = served();
    ASSERT_TRUE(publish(*client, sample_of("sample")));
    PublishedSample other = sample_of("other");
    other.name = "other";
    ASSERT_TRUE(publish(*client, other));
    fb::PinT pin;
    pin.selector = support::select("other");
    pin.pinned = true;
    ASSERT_TRUE(client->call<fb::EntryT>(pin));
  }
  for (int round = 0; round < 5; ++round) {
    kill_daemon();
    auto client = served();
    EXPECT_TRUE(has_its_bytes(*client, "sample")) << round;
    EXPECT_TRUE(has_its_bytes(*client, "other")) << round;
    fb::LookupT lookup;
    lookup.selector = support::select("other");
    const auto entry = client->call<fb::EntryT>(lookup);
    ASSERT_TRUE(entry);
    EXPECT_TRUE(entry->entry->pinned);
    EXPECT_EQ(entry->entry->generation, 1U);
  }
}

TEST_F(RecoveryTest, AReadersConnectionGoesOnWithItsLease) {
  start_supervised();
  auto reader = served();
  ASSERT_TRUE(publish(*reader, sample_of("sample")));
  const auto attached = attach(*reader, "sample");
  ASSERT_TRUE(attached);
  kill_daemon();
  fb::LeasesT list;
  const auto leases = reader->call<fb::LeaseListT>(list);
  ASSERT_TRUE(leases) << leases.error().message;
  ASSERT_EQ(leases->leases.size(), 1U);
  EXPECT_EQ(leases->leases[0]->lease, attached->lease);
  EXPECT_EQ(leases->leases[0]->label, "raw");
  ASSERT_TRUE(support::detach(*reader, attached->lease));
  EXPECT_EQ(support::detach(*reader, attached->lease).error().code, Code::not_found);
}

TEST_F(RecoveryTest, AReaderThatDiesWhileNoDaemonIsThereLosesItsLease) {
  start_supervised();
  {
    auto reader = served();
    ASSERT_TRUE(publish(*reader, sample_of("sample")));
    ASSERT_TRUE(attach(*reader, "sample"));
    pid_t pid = 0;
    served(&pid);
    ::kill(pid, SIGKILL);
  }
  auto client = served();
  EXPECT_TRUE(eventually([&] {
    const auto status = client->call<fb::StatusReportT>(fb::StatusT());
    return status && status->leases == 0;
  }));
}

TEST_F(RecoveryTest, WhatWasEvictedStaysEvictedAndItsMemoryIsBack) {
  start_supervised();
  auto client = served();
  ASSERT_TRUE(publish(*client, sample_of("sample")));
  ASSERT_TRUE(evict(*client, "sample"));
  kill_daemon();
  client = served();
  EXPECT_EQ(attach(*client, "sample").error().code, Code::not_found);
  EXPECT_EQ(cpu(*client).bytes, 0U);
  const auto published = publish(*client, sample_of("sample"));
  ASSERT_TRUE(published);
  EXPECT_EQ(published->entry->generation, 2U);  // generations go on
}

TEST_F(RecoveryTest, ALoadDiesWithTheDaemonAndLeavesNothing) {
  start_supervised();
  auto client = served();
  RawPublisher publisher(*client, {});
  ASSERT_TRUE(publisher.begin());
  ASSERT_TRUE(publisher.reserve());
  kill_daemon();
  EXPECT_EQ(client->receive().kind, Reply::Kind::end);
  auto next = served();
  EXPECT_EQ(cpu(*next).loading_bytes, 0U);
  EXPECT_TRUE(publish(*next));
}

TEST_F(RecoveryTest, ASupervisorThatDiesIsReplacedAndTheNextOneHasEverything) {
  start_supervised();
  auto reader = served();
  ASSERT_TRUE(publish(*reader, sample_of("sample")));
  ASSERT_TRUE(attach(*reader, "sample"));
  pid_t serving = 0;
  served(&serving);
  daemon().end(SIGKILL);
  ASSERT_TRUE(has_its_bytes(*reader, "sample"));  // an answer waits for the new supervisor
  EXPECT_NE(kill_daemon(), serving);
  EXPECT_TRUE(has_its_bytes(*reader, "sample"));
  auto another = served();
  EXPECT_TRUE(has_its_bytes(*another, "sample"));
  EXPECT_TRUE(served()->call<fb::StoppingT>(fb::StopT()));
  EXPECT_TRUE(eventually([&] { return !std::filesystem::exists(socket()); }));
}

// At each point of a publication and an attach: whoever was told that it is published finds it, and
// the bytes are the publisher's.
class KillPointsTest : public RecoveryTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(KillPointsTest, NothingThatWasPromisedIsLost) {
  for (int time = 1; time <= 3; ++time) {
    SCOPED_TRACE(format("{}:{}", GetParam(), time));
    start_supervised(format("{}:{}", GetParam(), time));
    std::vector<std::string> promised;
    for (int number = 0; number < 4; ++number) {
      auto client = served();
      PublishedSample sample = sample_of(format("s{}", number));
      sample.name = sample.content.source;
      RawPublisher publisher(*client, sample);
      if (publisher.run()) promised.push_back(sample.name);
      client = served();
      for (const std::string& name : promised) {
        if (has_its_bytes(*client, name)) continue;
        client = served();  // the kill may have come just now
        EXPECT_TRUE(has_its_bytes(*client, name)) << name;
      }
    }
    EXPECT_GE(promised.size(), 1U);
    EXPECT_TRUE(served()->call<fb::StoppingT>(fb::StopT()));
    EXPECT_TRUE(eventually([&] { return !std::filesystem::exists(socket()); }));
    daemon().wait();
  }
}

INSTANTIATE_TEST_SUITE_P(AtEachPoint, KillPointsTest,
                         ::testing::Values("daemon.granted", "daemon.reserved", "daemon.publishing",
                                           "daemon.published", "daemon.attached",
                                           "daemon.committing", "daemon.committed",
                                           "daemon.acknowledged", "supervisor.received",
                                           "supervisor.kept", "supervisor.acknowledged"),
                         [](const auto& point) {
                           std::string name = point.param;
                           std::ranges::replace(name, '.', '_');
                           return name;
                         });

}  // namespace
}  // namespace wc::daemon
