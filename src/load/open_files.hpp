// The shards of one load, opened anew: descriptors of its own (so that access advice and leases
// disturb nobody's), read leases where they can be had, and a second descriptor for direct reads
// when the first of them is due. Threads use it together.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "load/file_calls.hpp"
#include "load/read_lease.hpp"
#include "load/tier.hpp"

namespace wc::load {

class OpenFile {
 public:
  OpenFile(FileCalls& calls, const checkpoint::Shard& shard, Fd buffered);

  [[nodiscard]] const std::string& name() const { return shard_->name; }
  [[nodiscard]] std::uint64_t device() const { return shard_->receipt.device; }
  [[nodiscard]] bool in_memory() const { return in_memory_; }
  [[nodiscard]] FdView buffered() const { return buffered_; }
  [[nodiscard]] bool leased() const { return lease_.held(); }
  /// Errors: corrupt (somebody opens the file for writing).
  [[nodiscard]] Result<> check_lease() const;
  /// A descriptor for direct reads, and what they demand. Errors: unsupported, io.
  struct Direct {
    FdView fd;
    DirectLimits limits;
  };
  [[nodiscard]] Result<Direct> direct();
  /// The file is about to be read from the disk through the page cache, front to back.
  void advise_sequential();
  /// A stretch was read, and nobody else is expected to want it.
  void drop_cached(std::uint64_t offset, std::uint64_t bytes) const;

 private:
  FileCalls* calls_;
  const checkpoint::Shard* shard_;
  Fd buffered_;
  ReadLease lease_;
  bool in_memory_;
  std::mutex mutex_;  // of what follows
  Fd direct_;
  DirectLimits limits_;
  bool advised_ = false;
};

class OpenFiles {
 public:
  /// Errors: io.
  static Result<OpenFiles> open(FileCalls& calls, const checkpoint::Checkpoint& checkpoint);

  [[nodiscard]] OpenFile& operator[](std::uint32_t shard) { return *files_[shard]; }
  /// Each file has its lease.
  [[nodiscard]] bool all_leased() const;
  /// Errors: corrupt.
  [[nodiscard]] Result<> check_leases() const;

 private:
  std::vector<std::unique_ptr<OpenFile>> files_;
};

}  // namespace wc::load
