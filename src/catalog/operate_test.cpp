// Operators and accounts: budgets, eviction, pins, drains, lists.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "catalog/limits.hpp"
#include "catalog/testing.hpp"

namespace wc::catalog {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Result<Reservation> reserve(Bench& bench, std::uint64_t by, EntryId load, std::uint64_t bytes) {
  return bench.reserve(by, load, {bytes});
}

TEST(BudgetTest, ExhaustedSaysWhatIsNeededFreeEvictableAndWhoHoldsTheRest) {
  Bench bench;
  ASSERT_TRUE(bench.catalog.set_budget("cpu", 10 * kGiB, bench.now));
  ASSERT_TRUE(bench.load(1, wanting("idle"), 1, 2 * kGiB));
  ASSERT_TRUE(bench.load(1, wanting("leased"), 2, 3 * kGiB));
  ASSERT_TRUE(bench.attach(2, named("leased")));
  ASSERT_TRUE(bench.load(1, wanting("pinned"), 3, kGiB));
  ASSERT_TRUE(bench.catalog.pin(named("pinned"), true, bench.now));
  const EntryId load = bench.granted(1, wanting("big"));
  auto refused = reserve(bench, 1, load, 7 * kGiB);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::exhausted);
  EXPECT_EQ(
      refused.error().message,
      "cannot reserve 7.0 GiB on \"cpu\": 4.0 GiB of 10.0 GiB are free; evicting all that "
      "nobody uses would free 2.0 GiB: \"idle\" (2.0 GiB); held by \"leased\" (3.0 GiB, 1 lease); "
      "\"pinned\" (1.0 GiB, pinned)");
  EXPECT_TRUE(bench.attach(2, named("idle")));  // nothing is evicted in vain
  EXPECT_TRUE(bench.taken<ReleaseMemory>().empty());
}

TEST(BudgetTest, OneEntryLargerThanTheBudgetIsRefusedAndNothingIsCounted) {
  Bench bench;
  ASSERT_TRUE(bench.catalog.set_budget("cpu", kGiB, bench.now));
  const EntryId load = bench.granted(1, wanting("m"));
  ASSERT_FALSE(reserve(bench, 1, load, kGiB + 1));
  ASSERT_TRUE(reserve(bench, 1, load, kGiB));
  EXPECT_EQ(bench.device().loading_bytes, kGiB);
  EXPECT_EQ(bench.device().free_bytes(), 0U);
}

TEST(BudgetTest, SegmentsAreBounded) {
  Bench bench;
  const EntryId load = bench.granted(1, wanting("m"));
  const auto code = [&](std::vector<std::uint64_t> sizes) {
    auto reply = bench.reserve(1, load, sizes);
    return reply ? Code::ok : reply.error().code;
  };
  EXPECT_EQ(code({}), Code::invalid_argument);
  EXPECT_EQ(code({0}), Code::invalid_argument);
  EXPECT_EQ(code({kMaxSegmentBytes + 1}), Code::invalid_argument);
  EXPECT_EQ(code(std::vector<std::uint64_t>(kMaxSegments + 1, 1)), Code::invalid_argument);
  EXPECT_EQ(code(std::vector<std::uint64_t>(kMaxSegments, 1)), Code::ok);
  EXPECT_EQ(code({1}), Code::invalid_argument);
  EXPECT_EQ(bench.device().loading_bytes, kMaxSegments);
}

TEST(BudgetTest, ReservationThatCouldNotBeMadeIsTakenBack) {
  Bench bench;
  const EntryId load = bench.granted(1, wanting("m"));
  auto made = reserve(bench, 1, load, kGiB);
  ASSERT_TRUE(made);
  bench.catalog.reserve_failed(load, *made, bench.now);
  EXPECT_EQ(bench.device().loading_bytes, 0U);
  ASSERT_TRUE(bench.catalog.abandon(SessionId{1}, load, bench.now));
  EXPECT_TRUE(bench.taken<ReleaseMemory>().empty());
  bench.catalog.reserve_failed(load, *made, bench.now);
  EXPECT_TRUE(bench.catalog.audit());
}

TEST(EvictTest, PinnedGoesByForceOnly) {
  Bench bench;
  ASSERT_TRUE(bench.load(1, wanting("m"), 1));
  ASSERT_TRUE(bench.catalog.pin(named("m"), true, bench.now)->pinned);
  auto refused = bench.catalog.evict(named("m"), false, bench.now);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::busy);
  EXPECT_TRUE(bench.catalog.evict(named("m"), true, bench.now));
  EXPECT_EQ(bench.taken<ReleaseMemory>().size(), 1U);
}

TEST(EvictTest, LoadingGoesByForceAndItsLoaderIsTold) {
  Bench bench;
  const EntryId load = bench.granted(1, wanting("m"));
  ASSERT_TRUE(reserve(bench, 1, load, kGiB));
  EXPECT_EQ(bench.catalog.evict(named("m"), false, bench.now).error().code, Code::busy);
  auto evicted = bench.catalog.evict(named("m"), true, bench.now);
  ASSERT_TRUE(evicted);
  EXPECT_EQ(evicted->bytes, kGiB);
  const auto cancels = bench.taken<CancelLoad>();
  ASSERT_EQ(cancels.size(), 1U);
  EXPECT_EQ(cancels[0].load, load);
  EXPECT_EQ(reserve(bench, 1, load, kGiB).error().code, Code::cancelled);
  EXPECT_EQ(bench.catalog.publish_begin(SessionId{1}, load, {fingerprint(1), {}}).error().code,
            Code::cancelled);
  EXPECT_TRUE(bench.catalog.abandon(SessionId{1}, load, bench.now));
  EXPECT_EQ(bench.catalog.abandon(SessionId{1}, load, bench.now).error().code, Code::not_found);
  EXPECT_EQ(bench.taken<ReleaseMemory>().size(), 1U);
}

TEST(EvictTest, ByFingerprintUnderEveryName) {
  Bench bench;
  ASSERT_TRUE(bench.load(1, wanting("m", {"a"}), 1));
  ASSERT_TRUE(bench.begin(1, wanting("n", {"a"})));
  Selector selector;
  selector.fingerprint = fingerprint(1);
  auto evicted = bench.catalog.evict(selector, false, bench.now);
  ASSERT_TRUE(evicted);
  EXPECT_EQ(evicted->entries, 2U);
  EXPECT_EQ(evicted->bytes, kGiB);
  EXPECT_EQ(bench.catalog.entry_count(), 0U);
}

TEST(EvictTest, OneGenerationOfAName) {
  Bench bench;
  ASSERT_TRUE(bench.load(1, wanting("m", {"a"}), 1));
  ASSERT_TRUE(bench.attach(2, named("m")));
  auto update = wanting("m", {"b"});
  update.replace = true;
  ASSERT_TRUE(bench.load(1, update, 2));
  auto evicted = bench.catalog.evict(named("m", 1), false, bench.now);
  ASSERT_TRUE(evicted);
  EXPECT_EQ(evicted->leases, 1U);
  EXPECT_EQ(bench.attach(3, named("m", 1)).error().code, Code::not_found);
  EXPECT_TRUE(bench.attach(3, named("m")));
  EXPECT_EQ(bench.catalog.evict(named("m", 7), false, bench.now).error().code, Code::not_found);
}

TEST(EvictTest, IncompleteSetGivesItsMemoryBack) {
  Bench bench;
  auto wanted = wanting("m");
  wanted.world = 2;
  ASSERT_TRUE(bench.load(1, wanted, 1));
  auto evicted = bench.catalog.evict(named("m"), false, bench.now);
  ASSERT_TRUE(evicted);
  EXPECT_EQ(evicted->bytes, kGiB);
  EXPECT_EQ(bench.catalog.entry_count(), 0U);
}

TEST(PinTest, PinnedOldGenerationStaysUntilUnpinned) {
  Bench bench;
  ASSERT_TRUE(bench.load(1, wanting("m", {"a"}), 1));
  ASSERT_TRUE(bench.catalog.pin(named("m"), true, bench.now));
  auto update = wanting("m", {"b"});
  update.replace = true;
  ASSERT_TRUE(bench.load(1, update, 2));
  EXPECT_TRUE(bench.catalog.lookup(named("m", 1)));
  EXPECT_TRUE(bench.taken<ReleaseMemory>().empty());
  ASSERT_TRUE(bench.catalog.pin(named("m", 1), false, bench.now));
  EXPECT_EQ(bench.taken<ReleaseMemory>().size(), 1U);
  EXPECT_TRUE(bench.catalog.audit());
}

TEST(DrainTest, RefusesNewLeasesAndAnswersWhenTheLastOneEnds) {
  Bench bench;
  ASSERT_TRUE(bench.load(1, wanting("m", {"a"}), 1));
  const LeaseId first = bench.attach(2, named("m"))->lease;
  const LeaseId second = bench.attach(3, named("m"))->lease;
  auto reply = bench.catalog.drain(SessionId{4}, RequestId{1}, named("m"), {}, bench.now);
  ASSERT_TRUE(reply);
  EXPECT_FALSE(*reply);
  auto refused = bench.attach(5, named("m"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::busy);
  EXPECT_THAT(refused.error().message, HasSubstr("draining"));
  EXPECT_EQ(bench.begin(5, wanting("m", {"a"})).error().code, Code::busy);
  ASSERT_TRUE(bench.catalog.detach(SessionId{2}, first, bench.now));
  EXPECT_TRUE(bench.taken<Answer>().empty());
  ASSERT_TRUE(bench.catalog.detach(SessionId{3}, second, bench.now));
  const auto answers = bench.taken<Answer>();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(std::get<EntryInfo>(answers[0].what).state, State::draining);
  EXPECT_EQ(bench.catalog.lookup(named("m"))->state, State::draining);
}

TEST(DrainTest, DeadlineLeavesItDrainingAndUndoTakesItBack) {
  Bench bench;
  ASSERT_TRUE(bench.load(1, wanting("m"), 1));
  ASSERT_TRUE(bench.attach(2, named("m")));
  const Time deadline = bench.now.steady + std::chrono::seconds(5);
  ASSERT_TRUE(bench.catalog.drain(SessionId{4}, RequestId{1}, named("m"), deadline, bench.now));
  ASSERT_TRUE(bench.catalog.drain(SessionId{4}, RequestId{2}, named("m"), {}, bench.now));
  ASSERT_TRUE(bench.catalog.wait(SessionId{5}, RequestId{1}, named("m"), {}, bench.now));
  bench.pass(std::chrono::seconds(5));
  bench.catalog.expire(bench.now);
  auto answers = bench.taken<Answer>();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_THAT(std::get<Error>(answers[0].what).message, HasSubstr("leases left: 1"));
  EXPECT_EQ(bench.attach(3, named("m")).error().code, Code::busy);
  EXPECT_EQ(bench.catalog.undrain(named("m"), bench.now)->state, State::published);
  answers = bench.taken<Answer>();
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(std::get<Error>(answers[0].what).code, Code::cancelled);
  EXPECT_EQ(std::get<EntryInfo>(answers[1].what).name, "m");
  EXPECT_TRUE(bench.attach(3, named("m")));
}

TEST(DrainTest, OfASetWaitsForEveryRank) {
  Bench bench;
  auto wanted = wanting("m");
  wanted.world = 2;
  ASSERT_TRUE(bench.load(1, wanted, 1));
  wanted.rank = 1;
  ASSERT_TRUE(bench.load(1, wanted, 2));
  auto selector = named("m");
  selector.rank = 1;
  const LeaseId lease = bench.attach(2, selector)->lease;
  auto reply = bench.catalog.drain(SessionId{4}, RequestId{1}, named("m"), {}, bench.now);
  ASSERT_TRUE(reply);
  EXPECT_FALSE(*reply);
  EXPECT_EQ(bench.attach(2, named("m")).error().code, Code::busy);
  ASSERT_TRUE(bench.catalog.detach(SessionId{2}, lease, bench.now));
  EXPECT_EQ(bench.taken<Answer>().size(), 1U);
}

TEST(DrainTest, OfAnEntryThatIsEvictedMeanwhileIsAnsweredToo) {
  Bench bench;
  ASSERT_TRUE(bench.load(1, wanting("m"), 1));
  ASSERT_TRUE(bench.attach(2, named("m")));
  ASSERT_TRUE(bench.catalog.drain(SessionId{4}, RequestId{1}, named("m"), {}, bench.now));
  ASSERT_TRUE(bench.catalog.evict(named("m"), false, bench.now));
  EXPECT_TRUE(bench.taken<Answer>().empty());
  bench.catalog.session_closed(SessionId{2}, bench.now);
  const auto answers = bench.taken<Answer>();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(std::get<EntryInfo>(answers[0].what).state, State::gone);
}

TEST(ListTest, PagesCoverEachRowOnceWhateverHappensBetween) {
  Bench bench;
  for (unsigned n = 0; n < 10; ++n) ASSERT_TRUE(bench.load(1, wanting(format("m{}", n)), n));
  ASSERT_NE(bench.granted(1, wanting("loading")), EntryId::none);
  std::vector<std::string> names;
  std::uint64_t after = 0;
  do {
    const EntryPage page = bench.catalog.list({}, after, 3);
    for (const EntryInfo& entry : page.entries) names.push_back(entry.name);
    after = page.next;
    if (names.size() == 3) {
      ASSERT_TRUE(bench.catalog.evict(named("m2"), false, bench.now));
    }
  } while (after != 0);
  EXPECT_THAT(names, ::testing::ElementsAre("m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8",
                                            "m9", "loading"));
  EXPECT_THAT(bench.catalog.list(named("m5"), 0, 10).entries, ::testing::SizeIs(1));
}

TEST(ListTest, LeasesComeInPages) {
  Bench bench;
  ASSERT_TRUE(bench.load(1, wanting("m"), 1));
  ASSERT_TRUE(bench.load(1, wanting("n"), 2));
  for (int n = 0; n < 5; ++n) {
    ASSERT_TRUE(bench.attach(2, named("m")));
    ASSERT_TRUE(bench.attach(3, named("n")));
  }
  std::size_t seen = 0;
  std::uint64_t after = 0;
  do {
    const LeasePage page = bench.catalog.leases(named("n"), after, 2);
    for (const LeaseInfo& lease : page.leases) {
      EXPECT_EQ(lease.session, SessionId{3});
      EXPECT_EQ(lease.name, "n");
      ++seen;
    }
    after = page.next;
  } while (after != 0);
  EXPECT_EQ(seen, 5U);
}

TEST(DeviceTest, UnusedOnesMakeRoomForNewOnes) {
  Bench bench;
  for (std::size_t n = 0; n < 2 * kMaxDevices; ++n) {
    auto wanted = wanting("m");
    wanted.device = format("GPU-{}", n);
    const EntryId load = bench.granted(1, wanted);
    ASSERT_NE(load, EntryId::none);
    ASSERT_TRUE(bench.catalog.abandon(SessionId{1}, load, bench.now));
  }
  EXPECT_EQ(bench.catalog.devices().size(), kMaxDevices);
}

TEST(SessionTest, TheirNumberIsBounded) {
  Catalog catalog;
  for (std::uint64_t id = 1; id <= kMaxSessions; ++id) {
    ASSERT_TRUE(catalog.session_opened(SessionId{id}));
  }
  EXPECT_EQ(catalog.session_opened(SessionId{kMaxSessions + 1}).error().code, Code::exhausted);
  EXPECT_EQ(catalog.session_opened(SessionId{1}).error().code, Code::invalid_argument);
  catalog.session_closed(SessionId{1}, {});
  EXPECT_TRUE(catalog.session_opened(SessionId{kMaxSessions + 1}));
}

}  // namespace
}  // namespace wc::catalog
