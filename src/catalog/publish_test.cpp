// Publication: atomic, in two steps that may be cut off, with generations and sets of several
// ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "catalog/limits.hpp"
#include "catalog/testing.hpp"

namespace wc::catalog {
namespace {

using ::testing::HasSubstr;

BeginRequest rank_of(std::uint32_t rank, std::uint32_t world, std::string name = "m") {
  auto wanted = wanting(std::move(name));
  wanted.rank = rank;
  wanted.world = world;
  return wanted;
}

TEST(PublishTest, NothingIsAttachableBeforeTheSecondStep) {
  Bench bench;
  const EntryId load = bench.granted(1, wanting("m"));
  ASSERT_TRUE(bench.reserve(1, load, {kGiB}));
  EXPECT_EQ(bench.attach(2, named("m")).error().code, Code::busy);
  ASSERT_TRUE(bench.catalog.publish_begin(SessionId{1}, load, {fingerprint(1), {"a"}}));
  EXPECT_EQ(bench.attach(2, named("m")).error().code, Code::busy);
  auto published = bench.catalog.publish_done(load, {fingerprint(1), {}, 291}, bench.now);
  ASSERT_TRUE(published);
  EXPECT_EQ(published->outcome, Outcome::loaded);
  EXPECT_EQ(published->entry.tensors, 291U);
  EXPECT_EQ(published->entry.id, load);
  auto attached = bench.attach(2, named("m"));
  ASSERT_TRUE(attached);
  EXPECT_EQ(attached->entry.generation, 1U);
  EXPECT_EQ(attached->entry.state, State::published);
}

TEST(PublishTest, LoaderThatDiesBetweenTheStepsLeavesNothing) {
  Bench bench;
  const EntryId load = bench.granted(1, wanting("m"));
  ASSERT_TRUE(bench.reserve(1, load, {kGiB}));
  ASSERT_TRUE(bench.catalog.publish_begin(SessionId{1}, load, {fingerprint(1), {"a"}}));
  bench.catalog.session_closed(SessionId{1}, bench.now);
  auto late = bench.catalog.publish_done(load, {fingerprint(1), {}, 1}, bench.now);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::not_found);
  EXPECT_EQ(bench.taken<ReleaseMemory>().size(), 1U);
  EXPECT_EQ(bench.attach(2, named("m")).error().code, Code::not_found);
  EXPECT_EQ(bench.catalog.entry_count(), 0U);
  EXPECT_TRUE(bench.catalog.audit());
}

TEST(PublishTest, FailedCheckPassesTheRightOn) {
  Bench bench;
  const EntryId load = bench.granted(1, wanting("m", {"a"}));
  auto waiting = wanting("m", {"a"});
  waiting.wait = true;
  ASSERT_TRUE(bench.begin(2, waiting));
  ASSERT_TRUE(bench.reserve(1, load, {kGiB}));
  ASSERT_TRUE(bench.catalog.publish_begin(SessionId{1}, load, {fingerprint(1), {}}));
  ASSERT_TRUE(bench.catalog.publish_failed(load, bench.now));
  const auto answers = bench.taken<Answer>();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<Granted>(answers[0].what));
  EXPECT_EQ(bench.taken<ReleaseMemory>().size(), 1U);
}

TEST(PublishTest, OtherFingerprintThanAnnouncedIsAMismatch) {
  Bench bench;
  auto wanted = wanting("m");
  wanted.fingerprint = fingerprint(1);
  const EntryId load = bench.granted(1, wanted);
  ASSERT_TRUE(bench.reserve(1, load, {kGiB}));
  auto said = bench.catalog.publish_begin(SessionId{1}, load, {fingerprint(2), {}});
  ASSERT_FALSE(said);
  EXPECT_EQ(said.error().code, Code::mismatch);
  ASSERT_TRUE(bench.catalog.publish_begin(SessionId{1}, load, {fingerprint(1), {}}));
  auto found = bench.catalog.publish_done(load, {fingerprint(2), {}, 1}, bench.now);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Code::mismatch);
  EXPECT_EQ(bench.catalog.entry_count(), 0U);
}

TEST(PublishTest, ContentThatTurnsOutToBeResidentIsDroppedAndFoundByItsNewAliases) {
  Bench bench;
  ASSERT_TRUE(bench.load(1, wanting("m", {"a"}), 1));
  auto copy = bench.load(2, wanting("copy", {"b"}), 1);
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->outcome, Outcome::already_resident);
  EXPECT_EQ(copy->entry.name, "copy");
  EXPECT_EQ(bench.device().resident_bytes, kGiB);
  EXPECT_EQ(bench.device().releasing_bytes, kGiB);
  EXPECT_EQ(bench.taken<ReleaseMemory>().size(), 1U);
  auto again = bench.begin(3, wanting("m", {"b"}));
  ASSERT_TRUE(again && *again);
  EXPECT_TRUE(std::holds_alternative<Resident>(**again));
}

TEST(PublishTest, ReplaceIsANewGenerationAndTheOldOneGoesWithItsLastReader) {
  Bench bench;
  ASSERT_TRUE(bench.load(1, wanting("m", {"a"}), 1));
  auto reader = bench.attach(2, named("m"));
  ASSERT_TRUE(reader);
  auto update = wanting("m", {"b"});
  update.replace = true;
  auto published = bench.load(1, update, 2);
  ASSERT_TRUE(published);
  EXPECT_EQ(published->entry.generation, 2U);
  EXPECT_EQ(bench.attach(3, named("m"))->entry.fingerprint, fingerprint(2));
  auto old = bench.attach(3, named("m", 1));
  ASSERT_TRUE(old);
  EXPECT_EQ(old->entry.fingerprint, fingerprint(1));
  ASSERT_TRUE(bench.catalog.detach(SessionId{2}, reader->lease, bench.now));
  EXPECT_TRUE(bench.taken<ReleaseMemory>().empty());
  ASSERT_TRUE(bench.catalog.detach(SessionId{3}, old->lease, bench.now));
  EXPECT_EQ(bench.taken<ReleaseMemory>().size(), 1U);
  EXPECT_EQ(bench.attach(3, named("m", 1)).error().code, Code::not_found);
}

TEST(PublishTest, GenerationsAreNotReusedAfterEviction) {
  Bench bench;
  ASSERT_TRUE(bench.load(1, wanting("m"), 1));
  ASSERT_TRUE(bench.catalog.evict(named("m"), false, bench.now));
  auto again = bench.load(1, wanting("m"), 1);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->entry.generation, 2U);
}

TEST(PublishTest, SetIsSwitchedToWhenItsLastRankIsThere) {
  Bench bench;
  auto first = bench.load(1, rank_of(0, 2), 10);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->outcome, Outcome::prepared);
  EXPECT_EQ(first->entry.generation, 0U);
  auto early = bench.attach(3, named("m"));
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, Code::busy);
  EXPECT_THAT(early.error().message, HasSubstr("1 of its 2 ranks"));
  auto second = bench.load(2, rank_of(1, 2), 11);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->outcome, Outcome::loaded);
  EXPECT_EQ(second->entry.generation, 1U);
  auto selector = named("m");
  EXPECT_EQ(bench.attach(3, selector)->entry.fingerprint, fingerprint(10));
  selector.rank = 1;
  EXPECT_EQ(bench.attach(3, selector)->entry.fingerprint, fingerprint(11));
  selector.rank = 2;
  EXPECT_EQ(bench.attach(3, selector).error().code, Code::invalid_argument);
}

TEST(PublishTest, ReadersNeverSeeRanksOfTwoGenerations) {
  Bench bench;
  for (std::uint32_t rank : {0U, 1U}) ASSERT_TRUE(bench.load(1, rank_of(rank, 2), 10 + rank));
  auto selector = named("m");
  for (std::uint32_t rank : {0U, 1U}) {
    auto update = rank_of(rank, 2);
    update.replace = true;
    ASSERT_TRUE(bench.load(1, update, 20 + rank));
    const unsigned content = rank == 0 ? 10 : 20;
    selector.rank = 0;
    EXPECT_EQ(bench.catalog.lookup(selector)->fingerprint, fingerprint(content));
    selector.rank = 1;
    EXPECT_EQ(bench.catalog.lookup(selector)->fingerprint, fingerprint(content + 1));
  }
  EXPECT_EQ(bench.taken<ReleaseMemory>().size(), 2U);
}

TEST(PublishTest, SetsDoNotMixSources) {
  Bench bench;
  ASSERT_TRUE(bench.publish(1, bench.granted(1, rank_of(0, 2)), 10, kGiB, "old"));
  auto mixed = bench.publish(1, bench.granted(1, rank_of(1, 2)), 21, kGiB, "new");
  ASSERT_FALSE(mixed);
  EXPECT_EQ(mixed.error().code, Code::already_exists);
  auto replace = rank_of(1, 2);
  replace.replace = true;  // starts the set anew
  auto anew = bench.publish(1, bench.granted(1, replace), 21, kGiB, "new");
  ASSERT_TRUE(anew);
  EXPECT_EQ(anew->outcome, Outcome::prepared);
  auto complete = bench.publish(1, bench.granted(1, rank_of(0, 2)), 20, kGiB, "new");
  ASSERT_TRUE(complete);
  EXPECT_EQ(complete->entry.generation, 1U);
  EXPECT_TRUE(bench.catalog.audit());
}

TEST(PublishTest, RankThatStaysMovesOnWithTheOthers) {
  Bench bench;
  for (std::uint32_t rank : {0U, 1U}) {
    ASSERT_TRUE(bench.publish(1, bench.granted(1, rank_of(rank, 2)), 10 + rank, kGiB, "s"));
  }
  auto moved = rank_of(0, 2);
  moved.device = "GPU-2";
  ASSERT_TRUE(bench.publish(1, bench.granted(1, moved), 10, kGiB, "s"));
  auto stays = rank_of(1, 2);
  stays.fingerprint = fingerprint(11);
  auto reply = bench.begin(1, stays);
  ASSERT_TRUE(reply && *reply);
  EXPECT_EQ(std::get<Resident>(**reply).entry.generation, 2U);
  EXPECT_EQ(bench.catalog.lookup(named("m"))->device, "GPU-2");
}

TEST(PublishTest, OneContentInTwoRanksIsHeldOnce) {
  Bench bench;
  ASSERT_TRUE(bench.load(1, rank_of(0, 2), 5));
  auto replica = bench.load(1, rank_of(1, 2), 5);
  ASSERT_TRUE(replica);
  EXPECT_EQ(replica->outcome, Outcome::already_resident);
  EXPECT_EQ(replica->entry.generation, 1U);
  EXPECT_EQ(bench.device().resident_bytes, kGiB);
  EXPECT_TRUE(bench.catalog.audit());
  ASSERT_TRUE(bench.catalog.evict(named("m"), false, bench.now));
  EXPECT_EQ(bench.taken<ReleaseMemory>().size(), 2U);
  EXPECT_EQ(bench.catalog.entry_count(), 0U);
}

TEST(PublishTest, NothingReservedIsNothingToPublish) {
  Bench bench;
  const EntryId load = bench.granted(1, wanting("m"));
  auto begun = bench.catalog.publish_begin(SessionId{1}, load, {fingerprint(1), {}});
  ASSERT_FALSE(begun);
  EXPECT_EQ(begun.error().code, Code::invalid_argument);
  EXPECT_EQ(bench.catalog.publish_begin(SessionId{2}, load, {fingerprint(1), {}}).error().code,
            Code::not_found);
}

}  // namespace
}  // namespace wc::catalog
