// Fills segments from a checkpoint's files at the speed of the hardware: reading threads take
// blocks of files, digest them while they are in the cache, and bring them to their places. Starts
// threads and joins them before it returns; allocates its staging ring through the device's
// writers and nothing else that grows with the checkpoint.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "load/placement.hpp"
#include "memory/device.hpp"

namespace wc::load {

/// How files are read; `automatic` probes.
enum class Tier : std::uint8_t { automatic, hot, direct_uring, direct, buffered };

[[nodiscard]] std::string_view name_of(Tier tier);

struct Progress {
  std::uint64_t done_bytes = 0;
  std::uint64_t total_bytes = 0;
  std::chrono::nanoseconds elapsed{};
};

struct FillOptions {
  Tier tier = Tier::automatic;
  unsigned threads = 0;  // 0: by tier and cores
  bool digest = true;
  /// Called from one of the reading threads, ten times a second at most, and once at the end.
  std::function<void(const Progress&)> progress = {};
  /// Set by anybody to end the load: `cancelled`.
  const std::atomic<bool>* cancel = nullptr;
};

struct FillResult {
  std::vector<std::string> digests;  // for each shard: "xxh3t-4m:<32 hex>"; empty without digest
  std::uint64_t bytes = 0;           // read
  Tier tier = Tier::hot;             // that read most of them
  bool leased = true;                // a read lease was held on every file while it was read
  std::chrono::nanoseconds elapsed{};
};

/// Errors: corrupt (a file changed or shrank: name, offset), io (name, offset, errno), cancelled,
/// device. Nothing is promised about the segments' bytes after an error.
[[nodiscard]] Result<FillResult> fill(const checkpoint::Checkpoint& checkpoint,
                                      const Placement& placement, memory::Device& device,
                                      std::span<memory::View* const> views,
                                      const FillOptions& options = {});

struct Mismatch {
  std::uint32_t tensor = 0;  // index into Checkpoint::tensors()
  std::uint64_t offset = 0;  // of the first differing byte, in the tensor
};

/// Compares resident bytes with the files, block by block, without a second copy on the device.
/// At most `limit` mismatches, one a tensor. Errors: as fill().
[[nodiscard]] Result<std::vector<Mismatch>> compare(
    const checkpoint::Checkpoint& checkpoint, const Placement& placement, memory::Device& device,
    std::span<memory::View* const> views, std::size_t limit, const FillOptions& options = {});

}  // namespace wc::load
