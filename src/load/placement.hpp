// Where each tensor of a checkpoint goes: few, large segments, every tensor on its boundary, files'
// order kept so that a block of a file goes to its place in as few copies as possible. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "memory/types.hpp"

namespace wc::load {

struct PlacementOptions {
  std::uint64_t alignment = memory::kTensorAlignment;
  std::uint64_t granularity = 4096;              // segments' sizes are multiples of it
  std::uint64_t max_segment_bytes = UINT64_MAX;  // a single tensor may not exceed it
};

/// A stretch of a file whose bytes keep their distances on their way into a segment.
struct FileRun {
  std::uint64_t file_offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t segment_offset = 0;
  std::uint32_t segment = 0;
};

struct PlacedTensor {
  std::uint32_t segment = 0;
  std::uint64_t offset = 0;
};

struct Placement {
  std::vector<std::uint64_t> segment_bytes;      // rounded to the granularity
  std::vector<std::uint64_t> used_bytes;         // of each segment
  std::vector<PlacedTensor> tensors;             // as Checkpoint::tensors()
  std::vector<std::vector<FileRun>> shard_runs;  // for each shard, ascending by file_offset
};

/// Errors: exhausted (a tensor is larger than max_segment_bytes).
[[nodiscard]] Result<Placement> place(const checkpoint::Checkpoint& checkpoint,
                                      const PlacementOptions& options = {});

}  // namespace wc::load
