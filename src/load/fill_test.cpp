#include "load/fill.hpp"

#include <atomic>
#include <mutex>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "load/digest.hpp"
#include "tests/support/loading.hpp"

namespace wc::load {
namespace {

using support::Loading;
using support::made_tensor;
using support::MadeShard;
using support::odd_shards;

std::unique_ptr<memory::Device> open_device(bool staging) {
  if (!staging) return support::open_host();
  return std::make_unique<support::StagingDevice>(support::open_host());
}

struct Way {
  Tier tier;
  bool staging;
  bool digest;
  bool cached;
};

class FillTest : public testing::TestWithParam<Way> {};

TEST_P(FillTest, EveryWayGivesTheSameBytesAndDigests) {
  Loading loading(odd_shards(), open_device(GetParam().staging));
  if (!GetParam().cached) loading.drop_caches();
  loading.wipe();
  const auto result = loading.fill({.tier = GetParam().tier, .digest = GetParam().digest});
  ASSERT_TRUE(result) << result.error().message;
  loading.expect_loaded();
  if (!GetParam().digest) {
    EXPECT_TRUE(result->digests.empty());
    return;
  }
  EXPECT_EQ(result->bytes, loading.checkpoint().file_bytes());
  ASSERT_EQ(result->digests.size(), 2U);
  for (std::size_t n = 0; n < 2; ++n) {
    const auto path = loading.path(loading.shards()[n].name);
    EXPECT_EQ(result->digests[n], tree_digest(support::file_bytes(path)));
  }
}

std::vector<Way> ways() {
  std::vector<Way> all;
  for (const Tier tier :
       {Tier::automatic, Tier::hot, Tier::direct_uring, Tier::direct, Tier::buffered}) {
    for (const bool staging : {false, true}) {
      for (const bool digest : {false, true}) {
        for (const bool cached : {false, true}) all.push_back({tier, staging, digest, cached});
      }
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Ways, FillTest, testing::ValuesIn(ways()), [](const auto& tested) {
  const Way& way = tested.param;
  return format("{}{}{}{}", name_of(way.tier), way.staging ? "Staged" : "InPlace",
                way.digest ? "Digest" : "Plain", way.cached ? "Cached" : "Cold");
});

TEST(FillOfSmallCheckpointsTest, OneByteNoBytesAndNoTensorsLoad) {
  for (const bool staging : {false, true}) {
    for (const auto& tensors : {std::vector{made_tensor("a", 1)}, std::vector{made_tensor("a", 0)},
                                std::vector<support::MadeTensor>()}) {
      Loading loading({MadeShard{.tensors = tensors}}, open_device(staging));
      const auto result = loading.fill();
      ASSERT_TRUE(result) << result.error().message;
      loading.expect_loaded();
      EXPECT_EQ(result->digests.at(0),
                tree_digest(support::file_bytes(loading.path("model.safetensors"))));
    }
  }
}

TEST(FillResultTest, TellsTheTierThatWasUsed) {
  Loading loading(odd_shards(), open_device(false));
  EXPECT_EQ(loading.fill()->tier, Tier::hot);
  EXPECT_EQ(loading.fill({.tier = Tier::buffered})->tier, Tier::buffered);
}

TEST(FillResultTest, TellsWhetherTheFilesWereLeased) {
  Loading loading(odd_shards(), open_device(false));
  EXPECT_TRUE(loading.fill()->leased);
  loading.files().grant_leases = false;
  EXPECT_FALSE(loading.fill()->leased);
}

TEST(FillResultTest, WorksWithoutProc) {
  Loading loading(odd_shards(), open_device(false));
  loading.files().grant_reopening = false;
  loading.wipe();
  const auto result = loading.fill({.tier = Tier::direct});
  ASSERT_TRUE(result) << result.error().message;
  loading.expect_loaded();
}

TEST(FillProgressTest, GrowsAndEndsWithEverything) {
  Loading loading(odd_shards(), open_device(false));
  std::vector<Progress> seen;
  std::mutex mutex;
  const auto result = loading.fill({.progress = [&](const Progress& progress) {
    const std::scoped_lock lock(mutex);
    seen.push_back(progress);
  }});
  ASSERT_TRUE(result);
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.back().done_bytes, result->bytes);
  for (std::size_t n = 1; n < seen.size(); ++n) {
    EXPECT_GE(seen[n].done_bytes, seen[n - 1].done_bytes);
    EXPECT_EQ(seen[n].total_bytes, result->bytes);
  }
}

TEST(FillProgressTest, ComesTenTimesASecondAtMost) {
  Loading loading(odd_shards(), open_device(false));
  unsigned calls = 0;
  ASSERT_TRUE(loading.fill({.threads = 2, .progress = [&](const Progress&) { ++calls; }}));
  EXPECT_LE(calls, 12U) << "of 8 blocks";
}

TEST(FillArgumentsTest, ViewsMustBeThoseOfThePlacement) {
  Loading loading(odd_shards(), open_device(false));
  auto parts = loading.parts();
  parts.views = {};
  EXPECT_EQ(fill_in(system_context(), parts, {}).error().code, Code::invalid_argument);

  Loading small({MadeShard{.tensors = {made_tensor("a", 1)}}}, open_device(false));
  parts.views = small.views();
  EXPECT_EQ(fill_in(system_context(), parts, {}).error().code, Code::invalid_argument);

  ASSERT_TRUE(loading.views()[0]->make_read_only());
  EXPECT_EQ(loading.fill().error().code, Code::invalid_argument);
}

TEST(FillGapsTest, TensorsThatTheIndexLeavesOutAreReadButNotPlaced) {
  MadeShard first = {
      .name = "model-00001-of-00002.safetensors",
      .tensors = {made_tensor("a", 5000), made_tensor("out", 6'000'000), made_tensor("b", 5000)}};
  MadeShard second = {.name = "model-00002-of-00002.safetensors",
                      .tensors = {made_tensor("c", 100)}};
  for (const bool staging : {false, true}) {
    for (const bool digest : {false, true}) {
      // The index is written of shards that lack it; the file then gets it.
      MadeShard listed = first;
      std::erase_if(listed.tensors, [](const auto& tensor) { return tensor.name == "out"; });
      Loading loading({listed, second}, open_device(staging));
      support::write_shard(loading.checkpoint().directory(), first);
      loading.reopen();
      ASSERT_EQ(loading.checkpoint().shards()[0].passed_over, 1U);
      const auto result = loading.fill({.digest = digest});
      ASSERT_TRUE(result) << result.error().message;
      loading.expect_loaded();
      if (digest) {
        EXPECT_EQ(result->digests[0], tree_digest(support::file_bytes(loading.path(first.name))));
      }
    }
  }
}

TEST(FillDirectTest, AlignedDataIsReadIntoItsPlace) {
  MadeShard shard = {.tensors = {made_tensor("a", 16 << 20)}};
  shard.header_spaces = 4096 - 8 - support::header_of(shard).size();
  Loading loading({shard}, open_device(false));
  const memory::View& view = *loading.views()[0];
  std::atomic<unsigned> in_place = 0;
  loading.files().on_places = [&](std::span<const iovec> places) {
    const auto address = reinterpret_cast<std::uintptr_t>(places.front().iov_base);
    if (address >= view.address() && address < view.address() + view.bytes()) ++in_place;
  };
  loading.wipe();
  const auto result = loading.fill({.tier = Tier::direct});
  ASSERT_TRUE(result) << result.error().message;
  loading.expect_loaded();
  EXPECT_EQ(result->digests[0], tree_digest(support::file_bytes(loading.path(shard.name))));
  // All blocks but the one with the header in it; none where the disk takes no direct reads.
  EXPECT_EQ(in_place, result->tier == Tier::direct ? 4U : 0U);
}

}  // namespace
}  // namespace wc::load
