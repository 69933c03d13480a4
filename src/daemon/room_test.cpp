// Room for a load, with a daemon: what nobody uses goes, and its memory is waited for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/publish_case_test.hpp"

namespace wc::daemon {
namespace {

class DaemonRoomTest : public PublishCase {
 protected:
  void SetUp() override {
    DaemonOptions options;
    options.serve.budgets = {{"cpu", 4 * kMiB}};
    start(options);
  }

  static PublishedSample named_sample(const std::string& name, std::uint64_t mib) {
    PublishedSample sample;
    sample.name = name;
    sample.content = {name, {mib * kMiB}, 1};
    return sample;
  }
};

TEST_F(DaemonRoomTest, ALoadGetsTheRoomOfWhatNobodyUsed) {
  RawClient client = connect();
  ASSERT_TRUE(publish(client, named_sample("old", 2)));
  ASSERT_TRUE(publish(client, named_sample("newer", 1)));
  ASSERT_TRUE(publish(client, named_sample("big", 3)));
  EXPECT_EQ(attach(client, "old").error().code, Code::not_found);
  EXPECT_TRUE(attach(client, "newer"));
  EXPECT_TRUE(attach(client, "big"));
  EXPECT_TRUE(evict(client, "newer", true));
  EXPECT_TRUE(evict(client, "big", true));
}

TEST_F(DaemonRoomTest, WhatIsAttachedStaysAndTheRefusalNamesIt) {
  RawClient client = connect();
  ASSERT_TRUE(publish(client, named_sample("held", 3)));
  ASSERT_TRUE(attach(client, "held"));
  RawClient loader = connect();
  const auto refused = publish(loader, named_sample("big", 3));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::exhausted);
  EXPECT_THAT(refused.error().message, HasSubstr("held by \"held\" (3.0 MiB, 1 lease)"));
  EXPECT_TRUE(evict(client, "held", true));
}

TEST_F(DaemonRoomTest, WhatADeadReaderHeldIsKeptAndWhatADetachedOneHeldIsNot) {
  RawClient client = connect();
  ASSERT_TRUE(publish(client, named_sample("held", 3)));
  {
    RawClient reader = connect();
    ASSERT_TRUE(attach(reader, "held"));
  }
  fb::LookupT look;
  look.selector = select("held");
  ASSERT_TRUE(eventually([&] {
    const auto entry = client.call<fb::EntryT>(look);
    return entry && entry->entry->leases == 0;
  }));
  {
    RawClient loader = connect();
    const auto refused = publish(loader, named_sample("big", 3));
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr("since a reader of it died"));
  }
  ASSERT_TRUE(evict(client, "held"));
  RawClient again = connect();
  const auto made = publish(again, named_sample("big", 3));
  EXPECT_TRUE(made) << made.error().message;
  EXPECT_TRUE(evict(client, "big"));
}

}  // namespace
}  // namespace wc::daemon
