// The daemon's helper and its children, killed at each point: one request fails in words, nothing
// else is disturbed, and the memory is back.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/publish_case_test.hpp"

namespace wc::daemon {
namespace {

using support::attach;
using support::DaemonOptions;
using support::eventually;
using support::PublishedSample;
using support::RawClient;
using support::RawPublisher;

class FaultTest : public PublishCase {
 protected:
  void SetUp() override {}

  // The daemon with this point armed in all its processes.
  void start_with(const char* point) {
    DaemonOptions options;
    options.kill_at = point;
    start(options);
  }
};

TEST_F(FaultTest, AKilledReservationIsExhaustedAndTheSameConnectionGoesOn) {
  for (const char* point : {"helper.reserve", "helper.reserved"}) {
    start_with(point);
    RawClient client = connect();
    RawPublisher publisher(client, {});
    ASSERT_TRUE(publisher.begin());
    for (int count = 0; count < 3; ++count) {
      EXPECT_EQ(publisher.reserve().error().code, Code::exhausted) << point;
      EXPECT_EQ(cpu(client).loading_bytes, 0U) << point;
    }
    client.disconnect();
    EXPECT_TRUE(eventually([&] { return nothing_left(); })) << point;
    EXPECT_EQ(daemon().end(SIGTERM), 0);
  }
}

TEST_F(FaultTest, FailedReservationsLeaveNothingThatCouldAddUp) {
  DaemonOptions options;
  options.kill_at = "helper.reserve";
  options.open_files = 200;
  start(options);
  RawClient client = connect();
  for (int count = 0; count < 40; ++count) {
    RawPublisher publisher(client, {});
    ASSERT_TRUE(publisher.begin());
    const auto reserved = publisher.reserve();
    ASSERT_FALSE(reserved);
    EXPECT_THAT(reserved.error().message, ::testing::HasSubstr("out-of-memory killer")) << count;
    fb::AbandonT abandon;
    abandon.load = publisher.load();
    ASSERT_TRUE(client.call<fb::DoneT>(abandon));
  }
}

TEST_F(FaultTest, AKilledSealEndsItsLoadAndGivesTheMemoryBack) {
  for (const char* point : {"helper.seal", "helper.sealed"}) {
    start_with(point);
    RawClient client = connect();
    RawPublisher publisher(client, {});
    ASSERT_TRUE(publisher.begin());
    ASSERT_TRUE(publisher.reserve());
    ASSERT_TRUE(publisher.fill());
    EXPECT_EQ(publisher.publish().error().code, Code::exhausted) << point;
    EXPECT_EQ(attach(client, "sample").error().code, Code::not_found);
    EXPECT_TRUE(eventually([&] { return nothing_left(); })) << point;
    client.disconnect();
    EXPECT_EQ(daemon().end(SIGTERM), 0);
  }
}

TEST_F(FaultTest, AKilledReleaseIsARelease) {
  for (const char* point : {"helper.drop", "helper.dropped"}) {
    start_with(point);
    RawClient client = connect();
    ASSERT_TRUE(publish(client));
    ASSERT_TRUE(evict(client, "sample"));
    EXPECT_TRUE(eventually([&] { return nothing_left(); })) << point;
    client.disconnect();
    EXPECT_EQ(daemon().end(SIGTERM), 0);
  }
}

// Without a supervisor, what a daemon held ends with it: the next one begins empty, and serves.
TEST_F(FaultTest, ADaemonThatIsKilledLeavesNothingThatDisturbsTheNext) {
  for (const char* point : {"daemon.granted", "daemon.reserved", "daemon.publishing",
                            "daemon.published", "daemon.attached"}) {
    start_with(point);
    RawClient client = connect();
    RawPublisher publisher(client, {});
    auto published = publisher.run();
    if (published) {
      EXPECT_EQ(attach(client, "sample").error().code, Code::disconnected) << point;
    } else {
      EXPECT_EQ(published.error().code, Code::disconnected) << point;
    }
    const int status = daemon().wait();
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << point;
    start();
    RawClient next = connect();
    EXPECT_TRUE(publish(next)) << point;
    EXPECT_TRUE(attach(next, "sample")) << point;
    EXPECT_EQ(daemon().end(SIGTERM), 0);
  }
}

TEST_F(FaultTest, WhatIsPublishedOutlivesTheHelper) {
  start();
  RawClient client = connect();
  ASSERT_TRUE(publish(client));
  const pid_t helper = daemon().kill_helper();
  ASSERT_GT(helper, 0);
  std::vector<Fd> files;
  const auto attached = attach(client, "sample", &files);
  ASSERT_TRUE(attached) << attached.error().message;
  EXPECT_EQ(files.size(), 2U);
  ASSERT_TRUE(support::detach(client, attached->lease));
  PublishedSample other = sample_of("other");
  other.name = "other";
  EXPECT_TRUE(eventually([&] { return daemon().helper() != helper && daemon().helper() != 0; }));
  EXPECT_TRUE(publish(client, other));
  ASSERT_TRUE(evict(client, "sample"));
  ASSERT_TRUE(evict(client, "other"));
}

TEST_F(FaultTest, AHelperKilledAgainAndAgainDuringLoadsLosesNoMemory) {
  start();
  RawClient client = connect();
  for (int round = 0; round < 6; ++round) {
    RawPublisher publisher(client, {});
    ASSERT_TRUE(publisher.begin());
    fb::ReserveT reserve;
    reserve.load = publisher.load();
    reserve.segments = {64 * kMiB};
    const std::uint64_t request = client.send(reserve);
    ASSERT_GT(daemon().kill_helper(), 0);
    const auto answer = client.answer(request);
    EXPECT_TRUE(answer.type == fb::Body::Reserved || answer.type == fb::Body::Failure);
    fb::AbandonT abandon;
    abandon.load = publisher.load();
    ASSERT_TRUE(client.call<fb::DoneT>(abandon));
  }
  EXPECT_TRUE(eventually([&] { return nothing_left(); }));
}

TEST_F(FaultTest, AHelperThatDiesOfEveryJobLeavesADaemonThatServes) {
  start_with("helper.job");
  RawClient client = connect();
  RawPublisher publisher(client, {});
  ASSERT_TRUE(publisher.begin());
  for (int count = 0; count < 2; ++count) {
    EXPECT_EQ(publisher.reserve().error().code, Code::busy);
    EXPECT_TRUE(client.call<fb::StatusReportT>(fb::StatusT()));
  }
}

}  // namespace
}  // namespace wc::daemon
