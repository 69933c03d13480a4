// A checkpoint's files cut into blocks, the unit of work: each byte is read once, in file order,
// and what is read at once is a block of a file, not a tensor. Pure; threads may use one together.
#pragma once

#include <cstdint>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "load/placement.hpp"

namespace wc::load {

/// A block of a file: what is read of it, and which digest it makes.
struct Block {
  std::uint32_t shard = 0;
  std::uint64_t index = 0;   // of the digest's block in its file
  std::uint64_t offset = 0;  // in the file
  std::uint64_t bytes = 0;
};

/// Bytes of a file that stay together, and where they go; nowhere for headers and tensors that were
/// passed over.
struct Piece {
  std::uint64_t file_offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t segment_offset = 0;
  std::uint32_t segment = 0;
  bool placed = false;
};

class ReadPlan {
 public:
  /// `whole_files`: headers and gaps too, as digests need; otherwise only blocks with placed bytes,
  /// each from its first placed byte to its last, on a 4 KiB grid. Both arguments must outlive the
  /// plan.
  ReadPlan(const checkpoint::Checkpoint& checkpoint, const Placement& placement, bool whole_files);

  [[nodiscard]] const std::vector<Block>& blocks() const { return blocks_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  /// The pieces of a stretch of a file, in order, without a gap; replaces the content of `pieces`.
  void pieces(std::uint32_t shard, std::uint64_t offset, std::uint64_t bytes,
              std::vector<Piece>& pieces) const;

 private:
  const Placement& placement_;
  std::vector<Block> blocks_;
  std::uint64_t bytes_ = 0;
};

}  // namespace wc::load
