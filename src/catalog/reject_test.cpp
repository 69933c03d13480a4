// Entries that are not what their publishers said.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "catalog/testing.hpp"

namespace wc::catalog {
namespace {

using ::testing::HasSubstr;

// What the first reader says of an entry that is not what its publisher said.
Rejection corrupt(bool trusted = true) {
  return {
      .why = "segment 0 is smaller than it says", .uid = 7, .corrupt = true, .trusted = trusted};
}

class RejectTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(bench.load(1, wanting("m", {"a"}), 1)); }
  Result<Rejected> reject(const Rejection& rejection, std::uint64_t session = 2) {
    const LeaseId lease = bench.attach(session, named("m"))->lease;
    auto rejected = bench.catalog.reject(SessionId{session}, lease, rejection, bench.now);
    EXPECT_TRUE(bench.catalog.audit());
    return rejected;
  }
  [[nodiscard]] State state() { return bench.catalog.lookup(named("m"))->state; }

  Bench bench;
};

TEST_F(RejectTest, FirstReaderFailsTheEntryAndNobodyAttachesToItAnyMore) {
  const auto rejected = reject(corrupt());
  ASSERT_TRUE(rejected) << rejected.error().message;
  EXPECT_TRUE(rejected->failed);
  EXPECT_EQ(rejected->entry.name, "m");
  EXPECT_EQ(state(), State::failed);
  EXPECT_EQ(bench.catalog.lease_count(), 0U);
  const auto again = bench.attach(3, named("m"));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::corrupt);
  EXPECT_THAT(again.error().message, HasSubstr("segment 0 is smaller than it says"));
  const auto waited =
      bench.catalog.wait(SessionId{3}, RequestId{9}, named("m"), std::nullopt, bench.now);
  EXPECT_EQ(waited.error().code, Code::corrupt);
}

TEST_F(RejectTest, FailedEntryIsLoadedAnewAndItsMemoryGoes) {
  ASSERT_TRUE(reject(corrupt()));
  EXPECT_NE(bench.granted(3, wanting("m", {"a"})), EntryId::none);
  EXPECT_EQ(bench.taken<ReleaseMemory>().size(), 1U);
  EXPECT_TRUE(bench.catalog.audit());
}

TEST_F(RejectTest, FailedEntryKeepsItsNameFromNobody) {
  ASSERT_TRUE(reject(corrupt()));
  auto other = wanting("m", {"b"});
  other.fingerprint = fingerprint(2);
  ASSERT_TRUE(bench.load(3, other, 2));
  EXPECT_EQ(bench.attach(4, named("m"))->entry.fingerprint, fingerprint(2));
  EXPECT_TRUE(bench.catalog.audit());
}

TEST_F(RejectTest, SameContentPublishedByALoadThatWasUnderWayTakesItsPlace) {
  const EntryId load = bench.granted(3, wanting("n"));
  ASSERT_NE(load, EntryId::none);
  ASSERT_TRUE(reject(corrupt()));
  const auto published = bench.publish(3, load, 1);
  ASSERT_TRUE(published) << published.error().message;
  EXPECT_EQ(published->outcome, Outcome::loaded);
  EXPECT_TRUE(bench.attach(4, named("n")));
  EXPECT_TRUE(bench.catalog.audit());
}

TEST_F(RejectTest, WhoMayNotPublishAndOtherReasonsFailNothing) {
  EXPECT_FALSE(reject(corrupt(false))->failed);
  EXPECT_FALSE(reject({.why = "no such device here", .trusted = true})->failed);
  EXPECT_EQ(state(), State::published);
  Rejection by_publisher = corrupt(false);
  by_publisher.uid = bench.catalog.lookup(named("m"))->publisher_uid;
  EXPECT_TRUE(reject(by_publisher)->failed);
}

TEST_F(RejectTest, WhoeverHasItOrHadItIsProofAgainstIt) {
  const LeaseId other = bench.attach(3, named("m"))->lease;
  EXPECT_FALSE(reject(corrupt())->failed);
  ASSERT_TRUE(bench.catalog.detach(SessionId{3}, other, bench.now));
  EXPECT_FALSE(reject(corrupt())->failed);
  EXPECT_EQ(state(), State::published);
}

TEST_F(RejectTest, LeaseOfAnotherSessionIsNotFound) {
  const LeaseId lease = bench.attach(3, named("m"))->lease;
  const auto rejected = bench.catalog.reject(SessionId{2}, lease, corrupt(), bench.now);
  EXPECT_EQ(rejected.error().code, Code::not_found);
  EXPECT_EQ(bench.catalog.lease_count(), 1U);
}

TEST_F(RejectTest, FailedEntryIsTheFirstToMakeRoom) {
  ASSERT_TRUE(bench.catalog.keep_alive(named("m"), kForever, bench.now));
  ASSERT_TRUE(bench.catalog.set_budget("cpu", 2 * kGiB, bench.now));
  const EntryId load = bench.granted(3, wanting("n"));
  EXPECT_EQ(bench.reserve(3, load, {2 * kGiB}).error().code, Code::exhausted);
  ASSERT_TRUE(reject(corrupt()));
  EXPECT_EQ(bench.reserve(3, load, {2 * kGiB}).error().code, Code::busy) << "until it is free";
  EXPECT_EQ(bench.taken<EvictedForRoom>().size(), 1U);
  EXPECT_TRUE(bench.catalog.audit());
}

TEST(AddressTest, ResidentContentAtAnotherAddressIsAMismatch) {
  Bench bench;
  auto wanted = wanting("m", {"a"});
  wanted.address = 0x2000'0000'0000;
  ASSERT_TRUE(bench.load(1, wanted, 1));
  EXPECT_EQ(bench.attach(2, named("m"))->entry.address, wanted.address);
  EXPECT_TRUE(bench.begin(2, wanting("m", {"a"}))) << "who wants no address takes any";
  EXPECT_TRUE(bench.begin(2, wanted));
  wanted.address = 0x3000'0000'0000;
  const auto other = bench.begin(2, wanted);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Code::mismatch);
  EXPECT_THAT(other.error().message, HasSubstr("resident at 0x200000000000"));
}

}  // namespace
}  // namespace wc::catalog
