// One thread's way from files to memory: reads blocks by their tier and digests them while they are
// in its cache. Falls back from direct reads to the page cache, never the other way.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <sys/uio.h>

#include "load/block_hash.hpp"
#include "load/open_files.hpp"
#include "load/read_plan.hpp"
#include "load/tier_chooser.hpp"
#include "load/uring_reader.hpp"

namespace wc::load {

class BlockSource {
 public:
  /// All arguments must outlive the source.
  BlockSource(FileCalls& calls, OpenFiles& files, TierChooser& chooser)
      : calls_(calls), files_(files), chooser_(chooser) {}

  /// Reads a block into page-aligned memory of its size; with a hash, digests it. Errors: corrupt,
  /// io.
  [[nodiscard]] Result<> read(const Block& block, Tier tier, std::span<std::byte> to,
                              BlockHash* hash);
  /// Reads a block through the page cache into places that follow each other in the file; they are
  /// used up. Errors: corrupt, io.
  [[nodiscard]] Result<> read_scattered(const Block& block, Tier tier, std::span<iovec> places,
                                        BlockHash* hash);

  /// Whether a direct read of the block may go to this address.
  [[nodiscard]] bool may_read_directly(const Block& block, const std::byte* to);

  /// Bytes that are read, and then digested, at a time: what stays in a core's second-level cache.
  static constexpr std::uint64_t kCacheBytes = std::uint64_t{1} << 20;

 private:
  struct Chunks {
    std::uint64_t offset = 0;  // of the first in the file
    std::uint64_t bytes = 0;   // of each
  };
  [[nodiscard]] Result<> read_buffered(OpenFile& file, Chunks chunks, std::span<iovec> places,
                                       BlockHash* hash);
  [[nodiscard]] Result<std::uint64_t> read_direct(OpenFile& file, const Block& block, Tier tier,
                                                  std::span<std::byte> to);
  [[nodiscard]] Result<std::uint64_t> read_uring(FdView fd, std::uint64_t offset,
                                                 std::span<std::byte> to);

  FileCalls& calls_;
  OpenFiles& files_;
  TierChooser& chooser_;
  std::optional<UringReader> uring_;
  std::vector<iovec> chunk_;
  std::vector<iovec> reading_;
};

}  // namespace wc::load
