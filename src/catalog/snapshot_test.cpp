// A catalog that is saved and restored is the one that it was, but for what belonged to processes.
#include "catalog/snapshot.hpp"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "catalog/scenario.hpp"
#include "catalog/testing.hpp"

namespace wc::catalog {
namespace {

TEST(SnapshotTest, EverythingResidentComesBack) {
  Bench before;
  ASSERT_TRUE(before.catalog.set_budget("cpu", 100 * kGiB, before.now, "a test"));
  ASSERT_TRUE(before.load(1, wanting("a", {"receipt:1"}), 1));
  BeginRequest replaced = wanting("a");
  replaced.replace = true;
  const auto kept = before.attach(2, named("a"));
  ASSERT_TRUE(kept);
  ASSERT_TRUE(before.load(1, replaced, 2));
  ASSERT_TRUE(before.load(1, wanting("pinned"), 3));
  ASSERT_TRUE(before.catalog.pin(named("pinned"), true, before.now));
  ASSERT_TRUE(before.load(1, wanting("draining"), 4));
  ASSERT_TRUE(before.catalog.drain(Bench::session(3), Bench::request(9), named("draining"), {},
                                   before.now));
  ASSERT_TRUE(before.load(1, wanting("evicted"), 5));
  ASSERT_TRUE(before.catalog.evict(named("evicted"), false, before.now));
  BeginRequest half = wanting("half");
  half.world = 2;
  ASSERT_TRUE(before.load(1, half, 6));
  ASSERT_NE(before.granted(4, wanting("loading")), EntryId::none);

  const Snapshot saved = before.catalog.snapshot();
  Catalog after;
  ASSERT_TRUE(after.restore(saved));
  ASSERT_TRUE(after.session_opened(Bench::session(2)));
  const auto lease = before.catalog.saved_lease(kept->lease);
  ASSERT_TRUE(lease);
  ASSERT_TRUE(after.restore_lease(Bench::session(2), *lease));
  const auto whole = after.restored(7);
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_EQ(after.snapshot(), saved);
  EXPECT_THAT(after.take_effects(), ::testing::IsEmpty());

  EXPECT_EQ(after.lookup(named("a"))->generation, 2U);
  EXPECT_EQ(after.lookup(named("a", 1))->leases, 1U);
  EXPECT_TRUE(after.lookup(named("pinned"))->pinned);
  EXPECT_EQ(after.lookup(named("draining"))->state, State::draining);
  EXPECT_EQ(after.lookup(named("evicted")).error().code, Code::not_found);
  EXPECT_EQ(after.lookup(named("loading")).error().code, Code::not_found);
  Selector by_alias;
  by_alias.aliases = {"receipt:1"};
  EXPECT_EQ(after.lookup(by_alias)->generation, 1U);
  EXPECT_EQ(after.devices().at(0).budget_bytes, 100 * kGiB);
  EXPECT_EQ(after.devices().at(0).budget_from, "a test");
  EXPECT_EQ(after.devices().at(0).loading_bytes, 0U);
  EXPECT_EQ(after.devices().at(0).resident_bytes, 5 * kGiB);

  // The lease is the one that it was; the generation that only it kept goes with it.
  ASSERT_TRUE(after.detach(Bench::session(2), kept->lease, before.now));
  EXPECT_EQ(after.lookup(named("a", 1)).error().code, Code::not_found);
  EXPECT_EQ(after.take_effects().size(), 1U);
}

TEST(SnapshotTest, GenerationsGoOnAndNeverComeTwice) {
  Bench before;
  ASSERT_TRUE(before.load(1, wanting("a"), 1));
  ASSERT_TRUE(before.catalog.evict(named("a"), false, before.now));
  Bench after;
  Catalog& catalog = after.catalog;
  for (std::uint64_t id = 1; id <= 8; ++id) catalog.session_closed(SessionId{id}, after.now);
  ASSERT_TRUE(catalog.restore(before.catalog.snapshot()));
  ASSERT_TRUE(catalog.restored(0));
  ASSERT_TRUE(catalog.session_opened(SessionId{1}));
  EXPECT_EQ(after.load(1, wanting("a"), 2)->entry.generation, 2U);
}

TEST(SnapshotTest, WhatOnlyALeaseKeptGoesWhenItsConnectionDoesNotComeBack) {
  Bench before;
  const auto published = before.load(1, wanting("a"), 1);
  ASSERT_TRUE(before.attach(2, named("a")));
  ASSERT_TRUE(before.catalog.evict(named("a"), false, before.now));
  Catalog after;
  ASSERT_TRUE(after.restore(before.catalog.snapshot()));
  ASSERT_TRUE(after.restored(0));
  EXPECT_EQ(after.entry_count(), 0U);
  const auto effects = after.take_effects();
  ASSERT_EQ(effects.size(), 1U);
  EXPECT_EQ(std::get<ReleaseMemory>(effects[0]).entry, published->entry.id);
}

TEST(SnapshotTest, LeasesOfTheNewProcessHaveOtherIdsThanThoseOfTheOld) {
  Bench before;
  ASSERT_TRUE(before.load(1, wanting("a"), 1));
  const auto first = before.attach(1, named("a"));
  Catalog after;
  ASSERT_TRUE(after.restore(before.catalog.snapshot()));
  ASSERT_TRUE(after.restored(1'000));
  ASSERT_TRUE(after.session_opened(SessionId{1}));
  const auto second = after.attach(SessionId{1}, named("a"), before.now);
  EXPECT_NE(first->lease, second->lease);
  EXPECT_EQ(after.detach(SessionId{1}, first->lease, before.now).error().code, Code::not_found);
}

TEST(SnapshotTest, AStateThatDoesNotFitTogetherIsRefused) {
  Bench bench;
  ASSERT_TRUE(bench.load(1, wanting("a"), 1));
  const Snapshot good = bench.catalog.snapshot();
  const auto refused = [&](auto change) {
    Snapshot bad = good;
    change(bad);
    Catalog catalog;
    auto done = catalog.restore(bad);
    if (done) done = catalog.restored(0);
    return !done;
  };
  EXPECT_FALSE(refused([](Snapshot&) {}));
  EXPECT_TRUE(refused([](Snapshot& s) { s.entries[0].device = 7; }));
  EXPECT_TRUE(refused([](Snapshot& s) { s.entries[0].segments = 0; }));
  EXPECT_TRUE(refused([](Snapshot& s) { s.entries[0].fingerprint = "x"; }));
  EXPECT_TRUE(refused([](Snapshot& s) { s.entries[0].bytes = UINT64_MAX; }));
  EXPECT_TRUE(refused([](Snapshot& s) { s.entries.push_back(s.entries[0]); }));
  EXPECT_TRUE(refused([](Snapshot& s) { s.entries.clear(); }));
  EXPECT_TRUE(refused([](Snapshot& s) { s.sets.clear(); }));
  EXPECT_TRUE(refused([](Snapshot& s) { s.sets[0].members.clear(); }));
  EXPECT_TRUE(refused([](Snapshot& s) { s.sets[0].members[0] = EntryId::none; }));
  EXPECT_TRUE(refused([](Snapshot& s) { s.sets[0].status = 9; }));
  EXPECT_TRUE(refused([](Snapshot& s) { s.sets[0].name = ""; }));
  EXPECT_TRUE(refused([](Snapshot& s) { s.sets[0].generation = 2; }));
  EXPECT_TRUE(refused([](Snapshot& s) { s.counters.clear(); }));
  EXPECT_TRUE(refused([](Snapshot& s) { s.entries[0].used_ns = -1; }));
  EXPECT_TRUE(refused([](Snapshot& s) { s.entries[0].guarded_ns = INT64_MAX; }));
  EXPECT_TRUE(refused([](Snapshot& s) { s.entries[0].keep_alive_ns = -1; }));
  EXPECT_TRUE(refused([](Snapshot& s) { s.devices.push_back(s.devices[0]); }));
}

// Whose memory it is, and who may make room of it: nothing of that is forgotten.
TEST(SnapshotTest, TrustAndTheOrderOfUseComeBack) {
  Bench before;
  BeginRequest strangers = wanting("stranger's");
  strangers.publisher_uid = 1'234;
  ASSERT_TRUE(before.catalog.set_budget("cpu", 3 * kGiB, before.now));
  ASSERT_TRUE(before.load(1, strangers, 1));
  before.pass(std::chrono::seconds(1));
  ASSERT_TRUE(before.load(1, wanting("kept"), 2));
  ASSERT_TRUE(before.catalog.keep_alive(named("kept"), std::chrono::hours(1), before.now));
  before.pass(std::chrono::seconds(1));
  ASSERT_TRUE(before.load(1, wanting("dead reader's"), 3));
  ASSERT_TRUE(before.attach(2, named("dead reader's")));
  before.catalog.session_closed(Bench::session(2), before.now);
  const auto lease = before.attach(3, named("stranger's"));  // used last, and free
  ASSERT_TRUE(before.catalog.detach(Bench::session(3), lease->lease, before.now));

  Bench after;
  after.now = before.now;
  for (std::uint64_t id = 1; id <= 8; ++id) after.catalog.session_closed(SessionId{id}, after.now);
  ASSERT_TRUE(after.catalog.restore(before.catalog.snapshot()));
  ASSERT_TRUE(after.catalog.restored(0));
  ASSERT_TRUE(after.catalog.session_opened(SessionId{1}));
  EXPECT_EQ(after.catalog.lookup(named("stranger's"))->publisher_uid, 1'234U);
  for (const char* name : {"stranger's", "kept", "dead reader's"}) {
    const auto was = before.catalog.lookup(named(name));
    const auto is = after.catalog.lookup(named(name));
    EXPECT_EQ(is->used_unix_ns, was->used_unix_ns) << name;
    EXPECT_EQ(is->kept_until_unix_ns, was->kept_until_unix_ns) << name;
    EXPECT_EQ(is->keep_alive, was->keep_alive) << name;
  }
  EXPECT_FALSE(after.load(1, wanting("next"), 4));  // it waits until the memory is back
  ASSERT_EQ(after.taken<EvictedForRoom>().size(), 1U);
  EXPECT_EQ(after.catalog.lookup(named("stranger's")).error().code, Code::not_found);
  EXPECT_TRUE(after.catalog.lookup(named("kept")));
  EXPECT_TRUE(after.catalog.lookup(named("dead reader's")));
}

class SnapshotLivesTest : public ::testing::TestWithParam<unsigned> {};

// At each step of a random life: nothing changes in the snapshot unless revision or uses say so,
// and what is restored is equal and sound.
TEST_P(SnapshotLivesTest, EveryMomentCanBeSavedAndRestored) {
  std::minstd_rand random(GetParam());
  Scenario scenario([&](std::uint32_t n) { return static_cast<std::uint32_t>(random() >> 4) % n; });
  Snapshot before = scenario.catalog().snapshot();
  const auto version = [](const Catalog& catalog) {
    return std::pair(catalog.revision(), catalog.uses());
  };
  auto saved_at = version(scenario.catalog());
  for (int step = 0; step < 1'500; ++step) {
    ASSERT_EQ(scenario.step(), "");
    const Catalog& catalog = scenario.catalog();
    Snapshot now = catalog.snapshot();
    if (version(catalog) == saved_at) {
      ASSERT_EQ(now, before) << "step " << step;
    }
    saved_at = version(catalog);
    Catalog after;
    const auto restored = after.restore(now);
    ASSERT_TRUE(restored) << step << ": " << restored.error().message;
    for (const std::uint64_t id : scenario.sessions()) {
      ASSERT_TRUE(after.session_opened(SessionId{id}));
      for (const SavedLease& lease : catalog.leases_of(SessionId{id})) {
        ASSERT_TRUE(after.restore_lease(SessionId{id}, lease));
      }
    }
    const auto sound = after.restored(1);
    ASSERT_TRUE(sound) << step << ": " << sound.error().message;
    ASSERT_EQ(after.lease_count(), catalog.lease_count());
    ASSERT_EQ(after.snapshot(), now) << "step " << step;
    before = std::move(now);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, SnapshotLivesTest, ::testing::Range(1U, 5U));

}  // namespace
}  // namespace wc::catalog
