// The manifest of a checkpoint that has been read into its place: its tensors where they lie in
// segments and in files, the files with digests and receipts, and what the shards say of
// themselves. Pure but for who() and now.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "checkpoint/checkpoint.hpp"
#include "load/placement.hpp"
#include "manifest/builder.hpp"

namespace wc::api {

struct LoadedCheckpoint {
  const checkpoint::Checkpoint& checkpoint;
  const load::Placement& placement;
  std::span<const std::string> digests;           // of the shards; none where nothing was digested
  std::span<const std::uint64_t> addresses = {};  // of the segments; none where any will do
  std::uint64_t segment_flags = 0;                // how the device made them
  manifest::ProvenanceOptions provenance = {};
};

/// Metadata of shards becomes attributes of the root module: "safetensors.KEY" where all shards
/// that have the key agree, else "safetensors.KEY@SHARD" each; what an attribute can't hold is left
/// out. Errors: invalid_argument, exhausted, as the builder's.
[[nodiscard]] Result<manifest::Builder> manifest_of(const LoadedCheckpoint& loaded);

/// Publisher, command and host of this process, and the time; `source` and `took_ns` are to be set.
[[nodiscard]] manifest::ProvenanceOptions provenance_of_this_process();

}  // namespace wc::api
