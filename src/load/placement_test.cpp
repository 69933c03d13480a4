#include "load/placement.hpp"

#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "load/read_plan.hpp"
#include "tests/support/make_checkpoint.hpp"
#include "tests/support/temp_folder.hpp"

namespace wc::load {
namespace {

using support::made_tensor;
using support::MadeShard;

class PlacementTest : public testing::Test {
 protected:
  checkpoint::Checkpoint open(const std::vector<MadeShard>& shards) {
    const auto folder = support::write_checkpoint(folder_.path() / "checkpoint", shards);
    auto opened = checkpoint::Checkpoint::open(folder);
    EXPECT_TRUE(opened) << opened.error().message;
    return std::move(*opened);
  }

  // What holds for every placement.
  static void check(const checkpoint::Checkpoint& checkpoint, const Placement& placement,
                    const PlacementOptions& options = {}) {
    const auto tensors = checkpoint.tensors();
    ASSERT_EQ(placement.tensors.size(), tensors.size());
    ASSERT_EQ(placement.segment_bytes.size(), placement.used_bytes.size());
    for (std::size_t n = 0; n < placement.segment_bytes.size(); ++n) {
      EXPECT_GE(placement.segment_bytes[n], placement.used_bytes[n]);
      EXPECT_EQ(placement.segment_bytes[n] % options.granularity, 0U);
      EXPECT_GT(placement.segment_bytes[n], 0U);
    }
    std::vector<std::uint64_t> ends(placement.segment_bytes.size());
    for (std::size_t n = 0; n < tensors.size(); ++n) {
      const PlacedTensor& placed = placement.tensors[n];
      ASSERT_LT(placed.segment, ends.size());
      EXPECT_EQ(placed.offset % options.alignment, 0U);
      EXPECT_LE(placed.offset + tensors[n].bytes, placement.used_bytes[placed.segment]);
      if (tensors[n].bytes == 0) continue;
      EXPECT_GE(placed.offset, ends[placed.segment]) << "overlaps the tensor before";
      ends[placed.segment] = placed.offset + tensors[n].bytes;
    }
    check_runs(checkpoint, placement);
  }

  // Each tensor's bytes are in the runs, where the tensor was placed.
  static void check_runs(const checkpoint::Checkpoint& checkpoint, const Placement& placement) {
    const ReadPlan plan(checkpoint, placement, true);
    std::vector<Piece> pieces;
    for (std::size_t n = 0; n < placement.tensors.size(); ++n) {
      const auto& tensor = checkpoint.tensors()[n];
      plan.pieces(tensor.shard, tensor.offset, tensor.bytes, pieces);
      std::uint64_t at = placement.tensors[n].offset;
      for (const Piece& piece : pieces) {
        EXPECT_TRUE(piece.placed);
        EXPECT_EQ(piece.segment, placement.tensors[n].segment);
        EXPECT_EQ(piece.segment_offset, at);
        at += piece.bytes;
      }
      EXPECT_EQ(at, placement.tensors[n].offset + tensor.bytes);
    }
  }

  support::TempFolder folder_;
};

TEST_F(PlacementTest, MultiplesOfTheAlignmentMakeOneRunWhereverTheDataStarts) {
  for (const std::uint64_t spaces : {0U, 1U, 3U, 100U}) {
    const auto checkpoint =
        open({{.tensors = {made_tensor("a", 512), made_tensor("b", 1024), made_tensor("c", 4096)},
               .header_spaces = spaces}});
    const auto placement = place(checkpoint);
    ASSERT_TRUE(placement);
    check(checkpoint, *placement);
    ASSERT_EQ(placement->shard_runs.size(), 1U);
    ASSERT_EQ(placement->shard_runs[0].size(), 1U);
    EXPECT_EQ(placement->shard_runs[0][0].bytes, 5632U);
  }
}

TEST_F(PlacementTest, OddSizesBreakRunsOnlyBehindThemselves) {
  const auto checkpoint =
      open({{.tensors = {made_tensor("a", 512), made_tensor("b", 1), made_tensor("c", 512),
                         made_tensor("d", 513), made_tensor("e", 7)}}});
  const auto placement = place(checkpoint);
  ASSERT_TRUE(placement);
  check(checkpoint, *placement);
  std::vector<std::uint64_t> bytes;
  for (const auto& run : placement->shard_runs[0]) bytes.push_back(run.bytes);
  EXPECT_THAT(bytes, testing::ElementsAre(513, 1025, 7));
  EXPECT_EQ(placement->used_bytes[0], 2567U);
}

TEST_F(PlacementTest, ATensorWithoutBytesIsNeverPastTheLastByte) {
  const auto checkpoint = open({{.tensors = {made_tensor("a", 8), made_tensor("b", 0)}}});
  const auto placement = place(checkpoint);
  ASSERT_TRUE(placement);
  check(checkpoint, *placement);
}

TEST_F(PlacementTest, ShardsShareASegment) {
  const auto checkpoint =
      open({{.name = "model-00001-of-00002.safetensors",
             .tensors = {made_tensor("a", 100), made_tensor("b", 512)}},
            {.name = "model-00002-of-00002.safetensors", .tensors = {made_tensor("c", 1024)}}});
  const auto placement = place(checkpoint);
  ASSERT_TRUE(placement);
  check(checkpoint, *placement);
  EXPECT_EQ(placement->segment_bytes, std::vector<std::uint64_t>{4096});
  EXPECT_EQ(placement->shard_runs.size(), 2U);
}

TEST_F(PlacementTest, TensorsWithoutBytesHaveAPlace) {
  const auto checkpoint =
      open({{.tensors = {made_tensor("a", 0), made_tensor("b", 4096), made_tensor("c", 0)}}});
  const auto placement = place(checkpoint);
  ASSERT_TRUE(placement);
  check(checkpoint, *placement);
  EXPECT_EQ(placement->shard_runs[0].size(), 1U);
}

TEST_F(PlacementTest, ACheckpointOfEmptyTensorsHasASegmentAndOneOfNoneHasNone) {
  const auto empty = open({{.tensors = {made_tensor("a", 0)}}});
  const auto placement = place(empty);
  ASSERT_TRUE(placement);
  check(empty, *placement);
  EXPECT_EQ(placement->segment_bytes.size(), 1U);

  const auto none = open({{.tensors = {}}});
  EXPECT_TRUE(place(none)->segment_bytes.empty());
}

TEST_F(PlacementTest, LimitsMakeMoreSegments) {
  const auto checkpoint = open({{.tensors = {made_tensor("a", 5000), made_tensor("b", 3000),
                                             made_tensor("c", 8192), made_tensor("d", 1)}}});
  const PlacementOptions options = {.max_segment_bytes = 10'000};
  const auto placement = place(checkpoint, options);
  ASSERT_TRUE(placement);
  check(checkpoint, *placement, options);
  EXPECT_EQ(placement->segment_bytes, (std::vector<std::uint64_t>{8192, 8192, 4096}));
}

TEST_F(PlacementTest, TensorThatNoSegmentHoldsIsNamed) {
  const auto checkpoint = open({{.tensors = {made_tensor("huge", 8193)}}});
  const auto placement = place(checkpoint, {.max_segment_bytes = 10'000});
  ASSERT_FALSE(placement);
  EXPECT_EQ(placement.error().code, Code::exhausted);
  EXPECT_THAT(placement.error().message, testing::HasSubstr("\"huge\""));
}

TEST_F(PlacementTest, OtherAlignmentsAndGranularitiesHold) {
  const auto checkpoint =
      open({{.tensors = {made_tensor("a", 100), made_tensor("b", 5000), made_tensor("c", 64)}}});
  const PlacementOptions options = {.alignment = 4096, .granularity = 2 << 20};
  const auto placement = place(checkpoint, options);
  ASSERT_TRUE(placement);
  check(checkpoint, *placement, options);
}

TEST_F(PlacementTest, ThirtySixThousandTensorsTakeMilliseconds) {
  MadeShard shard;
  for (int n = 0; n < 36'000; ++n) {
    shard.tensors.push_back(made_tensor(format("layers.{}.weight", n), n % 3 == 0 ? 16U : 512U));
  }
  const auto checkpoint = open({shard});
  const auto begin = std::chrono::steady_clock::now();
  const auto placement = place(checkpoint);
  const auto took = std::chrono::steady_clock::now() - begin;
  ASSERT_TRUE(placement);
  EXPECT_LT(took, std::chrono::milliseconds(100));
  EXPECT_EQ(placement->shard_runs[0].size(), 12'001U) << "one more than there are odd tensors";
  EXPECT_EQ(placement->segment_bytes.size(), 1U);
}

}  // namespace
}  // namespace wc::load
