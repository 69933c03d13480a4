// The floors that a load is measured against: plain parallel reads of the same files, with nothing
// else done to the bytes.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace wc::bench {

using Seconds = std::chrono::duration<double>;

struct FloorFile {
  std::string path;
  std::uint64_t bytes = 0;
};

struct FloorOptions {
  unsigned threads = 2;
  std::uint64_t read_bytes = std::uint64_t{4} << 20;
  bool direct = false;  // O_DIRECT
};

/// Reads all files, one behind the other, into memory of their whole size.
[[nodiscard]] Seconds read_into_memory(std::span<const FloorFile> files, std::byte* memory,
                                       const FloorOptions& options);

/// Reads all files into one buffer a thread: what the storage gives.
[[nodiscard]] Seconds read_away(std::span<const FloorFile> files, const FloorOptions& options);

/// The page cache gives the files up.
void drop_caches(std::span<const FloorFile> files);

}  // namespace wc::bench
