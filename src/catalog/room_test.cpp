// Room: what is evicted for a load, what is kept, and when memory counts as free.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "catalog/limits.hpp"
#include "catalog/testing.hpp"

namespace wc::catalog {
namespace {

using std::chrono::minutes;
using ::testing::HasSubstr;

class RoomTest : public ::testing::Test {
 protected:
  RoomTest() { (void)bench.catalog.set_budget("cpu", 10 * kGiB, bench.now); }

  void load(const std::string& name, unsigned content, std::uint64_t gib) {
    ASSERT_TRUE(bench.load(1, wanting(name), content, gib * kGiB));
    bench.pass(std::chrono::seconds(1));
  }
  /// Nothing: it waits.
  Result<std::optional<Reservation>> ask(EntryId load, std::uint64_t gib, std::uint64_t request = 1,
                                         std::optional<std::chrono::seconds> patience = {}) {
    ReserveRequest wanted{load, {gib * kGiB}, {}};
    if (patience) wanted.room_deadline = bench.now.steady + *patience;
    return bench.catalog.reserve(SessionId{1}, RequestId{request}, wanted, bench.now);
  }
  void give_back() {
    for (const auto& each : bench.taken<ReleaseMemory>()) {
      ASSERT_TRUE(bench.catalog.released(each.entry, bench.now));
    }
  }
  bool there(const std::string& name) { return bench.catalog.lookup(named(name)).has_value(); }
  std::vector<Reservation> reserved() {
    std::vector<Reservation> made;
    for (const Answer& answer : bench.taken<Answer>()) {
      if (const auto* each = std::get_if<Reservation>(&answer.what)) made.push_back(*each);
    }
    return made;
  }

  Bench bench;
};

TEST_F(RoomTest, LeastRecentlyUsedGoesAndCountsAsFreeWhenItIsGivenBack) {
  load("a", 1, 4);
  load("b", 2, 4);
  ASSERT_TRUE(bench.catalog.detach(SessionId{2}, bench.attach(2, named("a"))->lease, bench.now));
  const EntryId big = bench.granted(1, wanting("big"));
  auto reply = ask(big, 5);
  ASSERT_TRUE(reply);
  EXPECT_FALSE(*reply);
  EXPECT_FALSE(there("b"));
  EXPECT_TRUE(there("a"));
  const auto said = bench.taken<EvictedForRoom>();
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0].name, "big");
  EXPECT_EQ(said[0].evicted.at(0).name, "b");
  EXPECT_TRUE(reserved().empty());
  give_back();
  const auto made = reserved();
  ASSERT_EQ(made.size(), 1U);
  EXPECT_EQ(made[0].total_bytes, 5 * kGiB);
  EXPECT_EQ(made[0].evicted.at(0).bytes, 4 * kGiB);
  EXPECT_TRUE(bench.catalog.audit());
}

TEST_F(RoomTest, WhatTheOthersMakeNeedlessStays) {
  load("small", 1, 1);
  load("large", 2, 8);
  ASSERT_TRUE(ask(bench.granted(1, wanting("big")), 8));
  EXPECT_TRUE(there("small"));
  EXPECT_FALSE(there("large"));
}

TEST_F(RoomTest, DeathOfAReaderKeepsItsEntryForTenMinutesAndDetachingDoesNot) {
  load("a", 1, 6);
  ASSERT_TRUE(bench.attach(2, named("a")));
  bench.catalog.session_closed(SessionId{2}, bench.now);
  EXPECT_GT(bench.catalog.lookup(named("a"))->kept_until_unix_ns, bench.now.unix_ns);
  const EntryId big = bench.granted(1, wanting("big"));
  auto refused = ask(big, 5);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("since a reader of it died"));
  bench.pass(minutes(10));
  EXPECT_TRUE(ask(big, 5));
  EXPECT_FALSE(there("a"));
}

TEST_F(RoomTest, KeepAliveCountsFromTheLastUseAndForEverDoesNotEnd) {
  auto wanted = wanting("a");
  wanted.keep_alive = minutes(5);
  ASSERT_TRUE(bench.load(1, wanted, 1, 6 * kGiB));
  const EntryId big = bench.granted(1, wanting("big"));
  bench.pass(minutes(4));
  EXPECT_FALSE(ask(big, 5));
  ASSERT_TRUE(bench.catalog.keep_alive(named("a"), kForever, bench.now));
  bench.pass(minutes(60));
  EXPECT_FALSE(ask(big, 5));
  EXPECT_EQ(bench.catalog.lookup(named("a"))->kept_until_unix_ns, INT64_MAX);
  ASSERT_TRUE(bench.catalog.keep_alive(named("a"), minutes(0), bench.now));
  EXPECT_TRUE(ask(big, 5));
}

TEST_F(RoomTest, WhatThisLoadReplacesStaysBesideIt) {
  load("m", 1, 6);
  auto update = wanting("m", {"new"});
  update.replace = true;
  auto refused = ask(bench.granted(1, update), 6);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("what this load replaces"));
  EXPECT_TRUE(there("m"));
}

TEST_F(RoomTest, ASetGoesWholeAndOneThatLacksRanksStays) {
  auto wanted = wanting("pair");
  wanted.world = 2;
  ASSERT_TRUE(bench.load(1, wanted, 1, 2 * kGiB));
  const EntryId big = bench.granted(1, wanting("big"));
  auto refused = ask(big, 9);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("its set lacks ranks"));
  wanted.rank = 1;
  ASSERT_TRUE(bench.load(1, wanted, 2, 2 * kGiB));
  ASSERT_TRUE(ask(big, 7));
  EXPECT_EQ(bench.taken<ReleaseMemory>().size(), 2U);
}

TEST_F(RoomTest, WaitingForRoomEndsWithTheLeaseThatHeldIt) {
  load("a", 1, 6);
  const LeaseId lease = bench.attach(2, named("a"))->lease;
  const EntryId big = bench.granted(1, wanting("big"));
  auto reply = ask(big, 5, 1, std::chrono::seconds(60));
  ASSERT_TRUE(reply);
  EXPECT_FALSE(*reply);
  EXPECT_EQ(ask(big, 1, 2).error().code, Code::busy);
  ASSERT_TRUE(bench.catalog.detach(SessionId{2}, lease, bench.now));
  EXPECT_FALSE(there("a"));
  give_back();
  EXPECT_EQ(reserved().size(), 1U);
}

TEST_F(RoomTest, WaitingForRoomEndsWithAProtection) {
  load("a", 1, 6);
  ASSERT_TRUE(bench.attach(2, named("a")));
  bench.catalog.session_closed(SessionId{2}, bench.now);
  ASSERT_TRUE(ask(bench.granted(1, wanting("big")), 5, 1, std::chrono::hours(1)));
  const auto next = bench.catalog.next_deadline();
  ASSERT_TRUE(next);
  EXPECT_EQ(*next, bench.now.steady + minutes(10));
  bench.pass(minutes(10));
  bench.catalog.expire(bench.now);
  EXPECT_FALSE(there("a"));
}

TEST_F(RoomTest, WaitingForRoomEndsAtItsLimitSayingWhoHoldsIt) {
  load("a", 1, 6);
  ASSERT_TRUE(bench.attach(2, named("a")));
  ASSERT_TRUE(ask(bench.granted(1, wanting("big")), 5, 1, std::chrono::seconds(60)));
  bench.pass(minutes(1));
  bench.catalog.expire(bench.now);
  const auto answers = bench.taken<Answer>();
  ASSERT_EQ(answers.size(), 1U);
  const Error& error = std::get<Error>(answers[0].what);
  EXPECT_EQ(error.code, Code::timed_out);
  EXPECT_THAT(error.message, HasSubstr("\"a\" (6.0 GiB, 1 lease)"));
  EXPECT_FALSE(bench.catalog.next_deadline());
}

TEST_F(RoomTest, WhatIsLargerThanTheBudgetIsNotWaitedFor) {
  auto refused = ask(bench.granted(1, wanting("big")), 11, 1, std::chrono::seconds(60));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::exhausted);
}

TEST_F(RoomTest, RoomThatWasMadeForOneIsTakenByNoOther) {
  load("a", 1, 6);
  const EntryId first = bench.granted(1, wanting("first"));
  const EntryId second = bench.granted(1, wanting("second"));
  ASSERT_TRUE(ask(first, 8));
  auto refused = ask(second, 3, 2);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("8.0 GiB are promised to loads that wait"));
  EXPECT_TRUE(*ask(second, 2, 2));
  give_back();
  EXPECT_EQ(reserved().size(), 1U);
}

TEST_F(RoomTest, TheDevicesOwnMemoryBoundsToo) {
  auto wanted = wanting("a");
  wanted.device = "GPU-1";
  wanted.capacity_bytes = 4 * kGiB;
  const EntryId load = bench.granted(1, wanted);
  EXPECT_FALSE(ask(load, 5));
  EXPECT_EQ(bench.device("GPU-1").limit_bytes(), 4 * kGiB);
  ASSERT_TRUE(bench.catalog.set_budget("GPU-1", 8 * kGiB, bench.now));
  EXPECT_FALSE(ask(load, 5));
  EXPECT_TRUE(*ask(load, 4));
}

TEST_F(RoomTest, LoadThatIsEvictedWhileItWaitsIsAnswered) {
  load("a", 1, 6);
  ASSERT_TRUE(ask(bench.granted(1, wanting("big")), 5));
  ASSERT_TRUE(bench.catalog.evict(named("big"), true, bench.now));
  const auto answers = bench.taken<Answer>();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(std::get<Error>(answers[0].what).code, Code::cancelled);
  EXPECT_TRUE(bench.catalog.audit());
}

}  // namespace
}  // namespace wc::catalog
