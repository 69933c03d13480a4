// Loads that end before they are published, each in its own way: nothing of them stays.
#include <string>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "base/mapping.hpp"
#include "daemon/publish_case_test.hpp"

namespace wc::daemon {
namespace {

class EarlyEndTest : public PublishCase {};

TEST_F(EarlyEndTest, StepsOutOfOrderAreRefusedAndTheLoadGoesOn) {
  RawClient client = connect();
  RawPublisher publisher(client, {});
  ASSERT_TRUE(publisher.begin());
  EXPECT_EQ(publisher.publish().error().code, Code::invalid_argument);  // nothing reserved
  fb::ReserveT manifest_only;
  manifest_only.load = publisher.load();
  manifest_only.manifest_bytes = 100;
  EXPECT_EQ(client.call<fb::ReservedT>(manifest_only).error().code, Code::invalid_argument);
  fb::ReserveT segments_only;
  segments_only.load = publisher.load();
  segments_only.segments = {kMiB};
  ASSERT_TRUE(client.call<fb::ReservedT>(segments_only));
  EXPECT_EQ(publisher.publish().error().code, Code::invalid_argument);  // no manifest
  fb::SupplyT supply;
  supply.load = publisher.load();
  EXPECT_EQ(client.call<fb::DoneT>(supply).error().code, Code::invalid_argument);
  fb::ReserveT foreign;
  foreign.load = 999;
  foreign.segments = {kMiB};
  EXPECT_EQ(client.call<fb::ReservedT>(foreign).error().code, Code::not_found);
  fb::AbandonT abandon;
  abandon.load = publisher.load();
  abandon.message = "enough";
  EXPECT_TRUE(client.call<fb::DoneT>(abandon));
  EXPECT_EQ(client.call<fb::DoneT>(abandon).error().code, Code::not_found);
  EXPECT_TRUE(eventually([&] { return nothing_left(); }));
}

TEST_F(EarlyEndTest, AnotherSessionsLoadIsNobodyElsesBusiness) {
  RawClient loader = connect();
  RawPublisher publisher(loader, {});
  ASSERT_TRUE(publisher.begin());
  RawClient other = connect();
  RawPublisher thief(other, {});
  thief.granted(publisher.load());
  EXPECT_EQ(thief.reserve().error().code, Code::not_found);
  EXPECT_EQ(thief.publish().error().code, Code::not_found);
}

TEST_F(EarlyEndTest, AWritableMappingThatIsLeftEndsThePublicationInWords) {
  RawClient client = connect();
  RawPublisher publisher(client, {});
  ASSERT_TRUE(publisher.begin());
  ASSERT_TRUE(publisher.reserve());
  ASSERT_TRUE(publisher.fill());
  auto mapping = Mapping::map(publisher.files()[0], {kMiB, PROT_READ | PROT_WRITE, MAP_SHARED, 0});
  ASSERT_TRUE(mapping);
  const auto published = publisher.publish();
  ASSERT_FALSE(published);
  EXPECT_EQ(published.error().code, Code::busy);
  EXPECT_EQ(attach(client, "sample").error().code, Code::not_found);
  EXPECT_TRUE(eventually([&] { return nothing_left(); }));
}

TEST_F(EarlyEndTest, AManifestThatLiesPublishesNothing) {
  RawClient client = connect();
  RawPublisher publisher(client, {});
  ASSERT_TRUE(publisher.begin());
  ASSERT_TRUE(publisher.reserve());
  ASSERT_TRUE(publisher.fill());
  ASSERT_EQ(::pwrite(publisher.files().back().get(), "no manifest", 11, 0), 11);
  EXPECT_EQ(publisher.publish().error().code, Code::corrupt);
  EXPECT_EQ(attach(client, "sample").error().code, Code::not_found);
  EXPECT_TRUE(eventually([&] { return nothing_left(); }));
}

TEST_F(EarlyEndTest, MoreThanTheBudgetIsExhaustedBeforeAnythingIsReserved) {
  daemon().end(SIGTERM);
  DaemonOptions options;
  options.serve.budgets = {{"cpu", 2 * kMiB}};
  start(options);
  RawClient client = connect();
  PublishedSample sample;
  sample.content.segments = {3 * kMiB};
  RawPublisher publisher(client, sample);
  ASSERT_TRUE(publisher.begin());
  const auto reserved = publisher.reserve();
  ASSERT_FALSE(reserved);
  EXPECT_EQ(reserved.error().code, Code::exhausted);
  EXPECT_THAT(reserved.error().message, HasSubstr("3.0 MiB"));
  EXPECT_THAT(reserved.error().message, HasSubstr("2.0 MiB"));
}

TEST_F(EarlyEndTest, WhoeverWaitsForADeadLoaderLoadsInItsPlace) {
  auto loader = std::make_unique<RawClient>(connect());
  RawPublisher publisher(*loader, {});
  ASSERT_TRUE(publisher.begin());
  ASSERT_TRUE(publisher.reserve());
  RawClient heir = connect();
  PublishedSample waiting;
  waiting.wait = true;
  RawPublisher next(heir, waiting);
  const std::uint64_t request = heir.send(next.begin_message());
  ASSERT_EQ(heir.receive().type, fb::Body::Progress);
  loader->disconnect();
  const Reply answer = heir.answer(request);
  ASSERT_EQ(answer.type, fb::Body::Granted);
  next.granted(answer.as<fb::GrantedT>()->load);
  ASSERT_TRUE(next.reserve());
  ASSERT_TRUE(next.fill());
  EXPECT_TRUE(next.publish());
  ASSERT_TRUE(evict(heir, "sample"));
}

TEST_F(EarlyEndTest, ALoaderThatGoesAtAnyStepLeavesNothing) {
  for (int step = 0; step < 5; ++step) {
    RawClient loader = connect();
    RawPublisher publisher(loader, {});
    ASSERT_TRUE(publisher.begin());
    fb::ReserveT reserve;
    reserve.load = publisher.load();
    reserve.segments = {kMiB};
    if (step == 1) loader.send(reserve);  // goes while it is being made
    if (step >= 2) {
      ASSERT_TRUE(publisher.reserve());
    }
    if (step >= 3) {
      ASSERT_TRUE(publisher.fill());
    }
    if (step == 4) loader.send(publisher.publish_message());  // goes while it is being sealed
    loader.disconnect();
    publisher.files().clear();
    RawClient client = connect();
    if (step == 4) {
      // It was over, or it was published before the end was seen: both are in order.
      ASSERT_TRUE(eventually([&] { return cpu(client).loading_bytes == 0; }));
      static_cast<void>(evict(client, "sample"));
    }
    EXPECT_TRUE(eventually([&] { return nothing_left(); })) << step;
    EXPECT_EQ(attach(client, "sample").error().code, Code::not_found) << step;
  }
}

TEST_F(EarlyEndTest, AnEvictionWithForceTakesALoadAway) {
  RawClient loader = connect();
  RawPublisher publisher(loader, {});
  ASSERT_TRUE(publisher.begin());
  ASSERT_TRUE(publisher.reserve());
  RawClient client = connect();
  EXPECT_EQ(evict(client, "sample").error().code, Code::busy);
  ASSERT_TRUE(evict(client, "sample", true));
  EXPECT_EQ(publisher.publish().error().code, Code::cancelled);
  EXPECT_EQ(publisher.reserve().error().code, Code::cancelled);
  publisher.files().clear();
  EXPECT_TRUE(eventually([&] { return nothing_left(); }));
}

}  // namespace
}  // namespace wc::daemon
