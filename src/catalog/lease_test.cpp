// Readers: leases, selectors, and requests that wait for an entry.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "catalog/limits.hpp"
#include "catalog/testing.hpp"

namespace wc::catalog {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(LeaseTest, DyingReaderReleasesItsLease) {
  Bench bench;
  ASSERT_TRUE(bench.load(1, wanting("m"), 1));
  for (int n = 0; n < 3; ++n) ASSERT_TRUE(bench.attach(2, named("m")));
  ASSERT_TRUE(bench.attach(3, named("m")));
  EXPECT_EQ(bench.catalog.lookup(named("m"))->leases, 4U);
  bench.catalog.session_closed(SessionId{2}, bench.now);
  EXPECT_EQ(bench.catalog.lookup(named("m"))->leases, 1U);
  EXPECT_EQ(bench.catalog.lease_count(), 1U);
  EXPECT_TRUE(bench.catalog.audit());
}

TEST(LeaseTest, DyingPublisherTakesNothingAway) {
  Bench bench;
  ASSERT_TRUE(bench.load(1, wanting("m"), 1));
  bench.catalog.session_closed(SessionId{1}, bench.now);
  EXPECT_TRUE(bench.attach(2, named("m")));
  EXPECT_TRUE(bench.taken<ReleaseMemory>().empty());
}

TEST(LeaseTest, BelongsToItsSessionAndEndsOnce) {
  Bench bench;
  ASSERT_TRUE(bench.load(1, wanting("m"), 1));
  const LeaseId lease = bench.attach(2, named("m"))->lease;
  EXPECT_EQ(bench.catalog.detach(SessionId{3}, lease, bench.now).error().code, Code::not_found);
  ASSERT_TRUE(bench.catalog.detach(SessionId{2}, lease, bench.now));
  EXPECT_EQ(bench.catalog.detach(SessionId{2}, lease, bench.now).error().code, Code::not_found);
  const LeaseId next = bench.attach(2, named("m"))->lease;
  EXPECT_NE(next, lease);
}

TEST(LeaseTest, EvictedEntryStaysForItsReadersAndIsHiddenFromNewcomers) {
  Bench bench;
  ASSERT_TRUE(bench.load(1, wanting("m", {"a"}), 1));
  const LeaseId lease = bench.attach(2, named("m"))->lease;
  auto evicted = bench.catalog.evict(named("m"), false, bench.now);
  ASSERT_TRUE(evicted);
  EXPECT_EQ(evicted->entries, 1U);
  EXPECT_EQ(evicted->bytes, kGiB);
  EXPECT_EQ(evicted->leases, 1U);
  EXPECT_EQ(bench.attach(3, named("m")).error().code, Code::not_found);
  EXPECT_NE(bench.granted(3, wanting("m", {"a"})), EntryId::none);
  auto leases = bench.catalog.leases({}, 0, 10);
  ASSERT_EQ(leases.leases.size(), 1U);
  EXPECT_EQ(leases.leases[0].name, "m");
  EXPECT_TRUE(bench.taken<ReleaseMemory>().empty());
  ASSERT_TRUE(bench.catalog.detach(SessionId{2}, lease, bench.now));
  EXPECT_EQ(bench.taken<ReleaseMemory>().size(), 1U);
}

TEST(LeaseTest, MissNamesWhatIsNear) {
  Bench bench;
  ASSERT_TRUE(bench.load(1, wanting("llama-8b"), 1));
  auto miss = bench.attach(2, named("lama-8b"));
  ASSERT_FALSE(miss);
  EXPECT_EQ(miss.error().code, Code::not_found);
  EXPECT_EQ(miss.error().message, "there is no \"lama-8b\": did you mean \"llama-8b\"");
}

TEST(SelectorTest, RawIsPreferredElseTheOnlyFormElseTheyAreListed) {
  Bench bench;
  auto wanted = wanting("m");
  wanted.form = "{\"engine\":\"a\"}";
  ASSERT_TRUE(bench.load(1, wanted, 1));
  EXPECT_EQ(bench.attach(2, named("m"))->entry.form, wanted.form);
  wanted.form = "{\"engine\":\"b\"}";
  ASSERT_TRUE(bench.load(1, wanted, 2));
  auto several = bench.attach(2, named("m"));
  ASSERT_FALSE(several);
  EXPECT_EQ(several.error().code, Code::invalid_argument);
  EXPECT_THAT(several.error().message,
              AllOf(HasSubstr("{\"engine\":\"a\"}"), HasSubstr("{\"engine\":\"b\"}")));
  ASSERT_TRUE(bench.load(1, wanting("m"), 3));
  EXPECT_EQ(bench.attach(2, named("m"))->entry.form, "raw");
  auto selector = named("m");
  selector.form = wanted.form;
  EXPECT_EQ(bench.attach(2, selector)->entry.fingerprint, fingerprint(2));
  selector.form = "{}";
  EXPECT_EQ(bench.attach(2, selector).error().code, Code::not_found);
}

TEST(SelectorTest, SeveralDevicesAreListed) {
  Bench bench;
  auto wanted = wanting("m");
  for (const char* device : {"GPU-1", "GPU-2"}) {
    wanted.device = device;
    ASSERT_TRUE(bench.load(1, wanted, 1));
  }
  auto selector = named("m");
  auto several = bench.attach(2, selector);
  ASSERT_FALSE(several);
  EXPECT_EQ(several.error().code, Code::invalid_argument);
  EXPECT_THAT(several.error().message, HasSubstr("\"GPU-1\", \"GPU-2\""));
  selector.device = "GPU-2";
  EXPECT_EQ(bench.attach(2, selector)->entry.device, "GPU-2");
  selector = {};
  selector.fingerprint = fingerprint(1);
  EXPECT_EQ(bench.attach(2, selector).error().code, Code::invalid_argument);
  selector.device = "GPU-1";
  EXPECT_TRUE(bench.attach(2, selector));
}

TEST(SelectorTest, FingerprintPrefixMustBeUnique) {
  Bench bench;
  ASSERT_TRUE(bench.load(1, wanting("m"), 1));
  ASSERT_TRUE(bench.load(1, wanting("n"), 2));
  Selector selector;
  selector.fingerprint = fingerprint(1);
  EXPECT_EQ(bench.attach(2, selector)->entry.name, "m");
  selector.fingerprint = fingerprint(1).substr(0, 8);
  EXPECT_EQ(bench.attach(2, selector).error().code, Code::invalid_argument);
  selector.fingerprint = "abc";
  EXPECT_EQ(bench.attach(2, selector).error().code, Code::invalid_argument);
  selector.fingerprint = "ffff";
  EXPECT_EQ(bench.attach(2, selector).error().code, Code::not_found);
}

TEST(SelectorTest, FirstKnownAliasDecidesAndTheLatestContentHasIt) {
  Bench bench;
  ASSERT_TRUE(bench.load(1, wanting("m", {"a", "b"}), 1));
  ASSERT_TRUE(bench.attach(2, named("m")));  // keeps the old generation
  auto update = wanting("m", {"b"});
  update.fingerprint = fingerprint(2);  // the file behind "b" was written to
  update.replace = true;
  ASSERT_TRUE(bench.load(1, update, 2));
  ASSERT_TRUE(bench.load(1, wanting("n", {"c"}), 3));
  Selector selector;
  selector.aliases = {"unknown", "b", "c"};
  EXPECT_EQ(bench.attach(2, selector)->entry.fingerprint, fingerprint(2));
  auto again = bench.begin(3, wanting("m", {"b"}));
  ASSERT_TRUE(again && *again);
  EXPECT_EQ(std::get<Resident>(**again).entry.fingerprint, fingerprint(2));
  EXPECT_TRUE(bench.catalog.audit());
}

TEST(SelectorTest, NameWithOtherContentThanExpectedIsAMismatch) {
  Bench bench;
  ASSERT_TRUE(bench.load(1, wanting("m", {"a"}), 1));
  auto selector = named("m");
  selector.aliases = {"changed"};
  EXPECT_EQ(bench.attach(2, selector).error().code, Code::mismatch);
  selector.aliases = {"a"};
  EXPECT_TRUE(bench.attach(2, selector));
}

TEST(WaitTest, NameThatNobodyLoadsYetMayBeWaitedFor) {
  Bench bench;
  auto reply = bench.catalog.wait(SessionId{2}, RequestId{9}, named("m"), {}, bench.now);
  ASSERT_TRUE(reply);
  EXPECT_FALSE(*reply);
  const EntryId load = bench.granted(1, wanting("m"));
  ASSERT_TRUE(bench.catalog.progress(SessionId{1}, load, 1, kGiB, bench.now));
  const auto progress = bench.taken<Progress>();
  ASSERT_EQ(progress.size(), 1U);
  EXPECT_EQ(progress[0].request, RequestId{9});
  EXPECT_EQ(progress[0].entry->total_bytes, kGiB);
  ASSERT_TRUE(bench.publish(1, load, 1));
  const auto answers = bench.taken<Answer>();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(std::get<EntryInfo>(answers[0].what).generation, 1U);
}

TEST(WaitTest, GenerationThatIsOverIsNotWaitedFor) {
  Bench bench;
  ASSERT_TRUE(bench.load(1, wanting("m"), 1));
  ASSERT_TRUE(bench.catalog.evict(named("m"), false, bench.now));
  auto over = bench.catalog.wait(SessionId{2}, RequestId{1}, named("m", 1), {}, bench.now);
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().code, Code::not_found);
  auto next = bench.catalog.wait(SessionId{2}, RequestId{1}, named("m", 2), {}, bench.now);
  ASSERT_TRUE(next);
  EXPECT_FALSE(*next);
  ASSERT_TRUE(bench.load(1, wanting("m"), 1));
  EXPECT_EQ(bench.taken<Answer>().size(), 1U);
}

TEST(WaitTest, EndsWhenWhatStoodBeforeTheEntryIsEvicted) {
  Bench bench;
  auto wanted = wanting("m");
  wanted.form = "{}";
  ASSERT_TRUE(bench.load(1, wanted, 1));
  ASSERT_TRUE(bench.load(1, wanting("m"), 2));
  auto raw = named("m");
  raw.form = "raw";
  ASSERT_TRUE(bench.catalog.drain(SessionId{1}, RequestId{1}, raw, {}, bench.now));
  ASSERT_TRUE(bench.catalog.wait(SessionId{2}, RequestId{1}, named("m"), {}, bench.now));
  EXPECT_TRUE(bench.taken<Answer>().empty());
  ASSERT_TRUE(bench.catalog.evict(raw, false, bench.now));
  const auto answers = bench.taken<Answer>();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(std::get<EntryInfo>(answers[0].what).form, "{}");
}

TEST(WaitTest, EndsWhenWhatStoodBeforeTheEntryGoesWithItsLastLease) {
  Bench bench;
  ASSERT_TRUE(bench.load(1, wanting("m", {"a"}), 1));
  const LeaseId lease = bench.attach(3, named("m"))->lease;
  auto update = wanting("m", {"b"});
  update.replace = true;
  ASSERT_TRUE(bench.load(1, update, 2));
  ASSERT_TRUE(bench.catalog.drain(SessionId{1}, RequestId{1}, named("m", 1), {}, bench.now));
  Selector selector;
  selector.aliases = {"a", "b"};
  ASSERT_TRUE(bench.catalog.wait(SessionId{2}, RequestId{1}, selector, {}, bench.now));
  EXPECT_TRUE(bench.taken<Answer>().empty());
  ASSERT_TRUE(bench.catalog.detach(SessionId{3}, lease, bench.now));
  EXPECT_EQ(bench.taken<Answer>().size(), 2U);
  EXPECT_TRUE(bench.catalog.audit());
}

TEST(WaitTest, EndsWhenResidentContentIsKnownByOneMoreAlias) {
  Bench bench;
  ASSERT_TRUE(bench.load(1, wanting("m", {"a"}), 1));
  Selector selector;
  selector.aliases = {"b"};
  ASSERT_TRUE(bench.catalog.wait(SessionId{2}, RequestId{1}, selector, {}, bench.now));
  auto copy = bench.load(1, wanting("m", {"b"}), 1);
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->entry.generation, 1U);
  EXPECT_EQ(bench.taken<Answer>().size(), 1U);
}

TEST(WaitTest, ProgressComesAtMostFourTimesASecond) {
  Bench bench;
  const EntryId load = bench.granted(1, wanting("m"));
  ASSERT_TRUE(bench.catalog.wait(SessionId{2}, RequestId{1}, named("m"), {}, bench.now));
  EXPECT_EQ(bench.taken<Progress>().size(), 1U);
  for (unsigned step = 1; step <= 200; ++step) {
    bench.pass(std::chrono::milliseconds(10));
    ASSERT_TRUE(bench.catalog.progress(SessionId{1}, load, step * 1'000'000, 1U << 30, bench.now));
  }
  const auto progress = bench.taken<Progress>();
  EXPECT_GE(progress.size(), 6U);
  EXPECT_LE(progress.size(), 8U);
  EXPECT_NEAR(static_cast<double>(progress.back().rate_bytes_per_s), 1e8, 1e6);
}

TEST(WaitTest, WaitersOfOneConnectionAreBounded) {
  Bench bench;
  for (std::uint64_t number = 1; number <= kMaxWaitsOfSession; ++number) {
    ASSERT_TRUE(bench.catalog.wait(SessionId{1}, RequestId{number}, named("m"), {}, bench.now));
  }
  auto more = bench.catalog.wait(SessionId{1}, RequestId{1000}, named("m"), {}, bench.now);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, Code::exhausted);
  auto twice = bench.catalog.wait(SessionId{1}, RequestId{1}, named("m"), {}, bench.now);
  EXPECT_EQ(twice.error().code, Code::invalid_argument);
  bench.catalog.session_closed(SessionId{1}, bench.now);
  EXPECT_FALSE(bench.catalog.next_deadline());
}

}  // namespace
}  // namespace wc::catalog
