#include "load/read_plan.hpp"

#include <algorithm>
#include <iterator>
#include <span>

#include "load/digest.hpp"

namespace wc::load {
namespace {

constexpr std::uint64_t kGrid = 4096;  // so that direct reads can take the blocks as they are

// The runs that touch [begin, end).
std::span<const FileRun> touching(const std::vector<FileRun>& runs, std::uint64_t begin,
                                  std::uint64_t end) {
  const auto first = std::ranges::partition_point(
      runs, [&](const FileRun& run) { return run.file_offset + run.bytes <= begin; });
  const auto last = std::ranges::partition_point(
      first, runs.end(), [&](const FileRun& run) { return run.file_offset < end; });
  return {first, last};
}

}  // namespace

ReadPlan::ReadPlan(const checkpoint::Checkpoint& checkpoint, const Placement& placement,
                   bool whole_files)
    : placement_(placement) {
  const auto shards = checkpoint.shards();
  for (std::uint32_t shard = 0; shard < shards.size(); ++shard) {
    const std::uint64_t size = shards[shard].receipt.size_bytes;
    for (std::uint64_t index = 0; index * kDigestBlockBytes < size; ++index) {
      std::uint64_t begin = index * kDigestBlockBytes;
      std::uint64_t end = std::min(size, begin + kDigestBlockBytes);
      if (!whole_files) {
        const auto runs = touching(placement.shard_runs[shard], begin, end);
        if (runs.empty()) continue;
        begin = std::max(begin, runs.front().file_offset / kGrid * kGrid);
        const std::uint64_t last = runs.back().file_offset + runs.back().bytes;
        end = std::min(end, (last + kGrid - 1) / kGrid * kGrid);
      }
      blocks_.push_back({.shard = shard, .index = index, .offset = begin, .bytes = end - begin});
      bytes_ += end - begin;
    }
  }
}

void ReadPlan::pieces(std::uint32_t shard, std::uint64_t offset, std::uint64_t bytes,
                      std::vector<Piece>& pieces) const {
  pieces.clear();
  const std::uint64_t end = offset + bytes;
  std::uint64_t at = offset;
  for (const FileRun& run : touching(placement_.shard_runs[shard], offset, end)) {
    const std::uint64_t from = std::max(run.file_offset, offset);
    const std::uint64_t to = std::min(run.file_offset + run.bytes, end);
    if (from > at) pieces.push_back({.file_offset = at, .bytes = from - at});
    pieces.push_back({.file_offset = from,
                      .bytes = to - from,
                      .segment_offset = run.segment_offset + (from - run.file_offset),
                      .segment = run.segment,
                      .placed = true});
    at = to;
  }
  if (end > at) pieces.push_back({.file_offset = at, .bytes = end - at});
}

}  // namespace wc::load
