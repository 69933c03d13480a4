// The tree digest `xxh3t-4m`: XXH3-128 over the list of the XXH3-128 digests of a file's 4 MiB
// blocks, each in its canonical 16 bytes, so that threads that read out of order can make it. It
// finds accidents, not forgers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace wc::load {

inline constexpr std::uint64_t kDigestBlockBytes = std::uint64_t{4} << 20;

class TreeDigest {
 public:
  explicit TreeDigest(std::uint64_t file_bytes);
  /// Threads may set different blocks at the same time.
  void set_block(std::uint64_t index, std::span<const std::byte, 16> canonical);
  /// "xxh3t-4m:<32 hexadecimal digits>". Every block must have been set.
  [[nodiscard]] std::string finish() const;

 private:
  std::vector<std::byte> blocks_;
};

/// Of bytes in memory.
[[nodiscard]] std::string tree_digest(std::span<const std::byte> bytes);

}  // namespace wc::load
