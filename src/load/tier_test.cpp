#include "load/tier.hpp"

#include <map>
#include <optional>

#include <gtest/gtest.h>

#include "load/tier_chooser.hpp"
#include "tests/support/loading.hpp"

namespace wc::load {
namespace {

using std::chrono::milliseconds;
using support::Loading;
using support::made_tensor;
using support::MadeShard;

TEST(TierTest, EveryTierHasAName) {
  for (const Tier tier :
       {Tier::automatic, Tier::hot, Tier::direct_uring, Tier::direct, Tier::buffered}) {
    EXPECT_NE(name_of(tier), "unknown");
  }
}

TEST(MountMemoryTest, RemembersEachMountByItself) {
  MountMemory memory;
  EXPECT_EQ(memory.fastest(1), std::nullopt);
  EXPECT_TRUE(memory.direct_works(1));
  memory.remember(1, Tier::direct);
  EXPECT_EQ(memory.fastest(1), Tier::direct);
  EXPECT_EQ(memory.fastest(2), std::nullopt);
  EXPECT_TRUE(memory.direct_failed(1)) << "the first failure is news";
  EXPECT_FALSE(memory.direct_failed(1));
  EXPECT_FALSE(memory.direct_works(1));
  EXPECT_EQ(memory.fastest(1), Tier::buffered);
  EXPECT_TRUE(memory.direct_works(2));
}

// A chooser over one small file.
class TierChooserTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kBlocks = 120;

  TierChooserTest()
      : loading_({MadeShard{.tensors = {made_tensor("a", 100)}}}, support::open_host()) {
    auto opened = OpenFiles::open(loading_.files(), loading_.checkpoint());
    EXPECT_TRUE(opened);
    files_.emplace(std::move(*opened));
  }

  // Blocks past the file's end are in no cache.
  [[nodiscard]] static Block block(std::uint64_t index) {
    constexpr std::uint64_t kBlock = 4 << 20;
    return {.shard = 0, .index = index, .offset = (index + 1) * kBlock, .bytes = kBlock};
  }

  // Reads blocks until the chooser has made up its mind, each tier taking its time.
  void run_trials(TierChooser& chooser, const std::map<Tier, milliseconds>& times) {
    for (std::uint64_t n = 0; n < kBlocks; ++n) {
      const Tier tier = chooser.choose(block(n));
      ++chosen_[tier];
      const auto time = times.find(tier);
      ASSERT_NE(time, times.end()) << name_of(tier);
      chooser.report(block(n), tier, time->second);
    }
  }

  Loading loading_;
  std::optional<OpenFiles> files_;
  MountMemory mounts_;
  std::map<Tier, std::uint64_t> chosen_;
};

TEST_F(TierChooserTest, FastestWayIsKeptAndRemembered) {
  for (const Tier fastest : {Tier::direct, Tier::direct_uring, Tier::buffered}) {
    MountMemory mounts;
    chosen_.clear();
    TierChooser chooser(Tier::automatic, loading_.files(), *files_, mounts);
    std::map<Tier, milliseconds> times = {{Tier::direct, milliseconds(3)},
                                          {Tier::direct_uring, milliseconds(3)},
                                          {Tier::buffered, milliseconds(3)}};
    times[fastest] = milliseconds(2);
    run_trials(chooser, times);
    EXPECT_EQ(chosen_[fastest], kBlocks - 2 * TierChooser::kTrialBlocks);
    EXPECT_EQ(chooser.most(), fastest);
    const auto device = loading_.checkpoint().shards()[0].receipt.device;
    EXPECT_EQ(mounts.fastest(device), fastest);

    TierChooser next(Tier::automatic, loading_.files(), *files_, mounts);
    EXPECT_EQ(next.choose(block(0)), fastest) << "known from the load before";
  }
}

TEST_F(TierChooserTest, EqualsLeaveThePageCacheAlone) {
  TierChooser chooser(Tier::automatic, loading_.files(), *files_, mounts_);
  run_trials(chooser, {{Tier::direct, milliseconds(100)},
                       {Tier::direct_uring, milliseconds(96)},
                       {Tier::buffered, milliseconds(85)}});
  EXPECT_EQ(chooser.most(), Tier::direct);
}

TEST_F(TierChooserTest, RefusedUringIsNotTried) {
  TierChooser chooser(Tier::automatic, loading_.files(), *files_, mounts_);
  chooser.uring_failed({Code::unsupported, "refused", "EPERM"});
  run_trials(chooser, {{Tier::direct, milliseconds(3)}, {Tier::buffered, milliseconds(2)}});
  EXPECT_EQ(chooser.most(), Tier::buffered);
  TierChooser wanted(Tier::direct_uring, loading_.files(), *files_, mounts_);
  EXPECT_EQ(wanted.choose(block(0)), Tier::direct_uring);
  wanted.uring_failed({Code::unsupported, "refused", "EPERM"});
  EXPECT_EQ(wanted.choose(block(0)), Tier::direct);
}

TEST_F(TierChooserTest, CachedBlocksAreHotAndWishesAreKept) {
  TierChooser chooser(Tier::automatic, loading_.files(), *files_, mounts_);
  const Block cached = {.shard = 0, .index = 0, .offset = 0, .bytes = 50};
  EXPECT_EQ(chooser.choose(cached), Tier::hot);
  for (const Tier tier : {Tier::hot, Tier::direct_uring, Tier::direct, Tier::buffered}) {
    TierChooser wanted(tier, loading_.files(), *files_, mounts_);
    EXPECT_EQ(wanted.choose(block(0)), tier);
    EXPECT_EQ(wanted.choose(cached), tier);
  }
}

TEST_F(TierChooserTest, FailedDirectReadsAreNotTriedAgain) {
  TierChooser chooser(Tier::automatic, loading_.files(), *files_, mounts_);
  EXPECT_EQ(chooser.choose(block(0)), Tier::direct);
  chooser.direct_failed((*files_)[0], {Code::io, "refused", "EINVAL"});
  for (std::uint64_t n = 1; n < 20; ++n) EXPECT_EQ(chooser.choose(block(n)), Tier::buffered);
}

}  // namespace
}  // namespace wc::load
