// How a stretch of a file is read best: whether it is in the page cache, what direct reads demand,
// and what was learnt about the mount it lies on.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "base/fd.hpp"
#include "load/file_calls.hpp"
#include "load/fill.hpp"

namespace wc::load {

/// What O_DIRECT demands of one file.
struct DirectLimits {
  std::uint64_t memory_alignment = 4096;
  std::uint64_t offset_alignment = 4096;  // of offsets and lengths
};

/// From statx(STATX_DIOALIGN); 4,096 where the kernel is silent (before 6.1, or the file system);
/// nothing where it says that the file takes no direct reads.
[[nodiscard]] std::optional<DirectLimits> direct_limits(FdView fd);

/// Whether reading costs no I/O: bytes at sampled offsets come at once (RWF_NOWAIT). `mincore`
/// calls everything resident for files of another owner, and `cachestat` refuses, so neither
/// serves.
[[nodiscard]] bool is_cached(FileCalls& calls, FdView fd, std::uint64_t offset,
                             std::uint64_t bytes);

/// A file system that lives in memory.
[[nodiscard]] bool is_in_memory(FdView fd);

/// What earlier loads found out about mounts, by st_dev. Thread-safe.
class MountMemory {
 public:
  /// The fastest way to read what isn't cached; nothing: not known.
  [[nodiscard]] std::optional<Tier> fastest(std::uint64_t device) const;
  void remember(std::uint64_t device, Tier fastest);
  /// False: direct reads failed on this mount.
  [[nodiscard]] bool direct_works(std::uint64_t device) const;
  /// True for the first failure of a mount, which is then to be logged.
  bool direct_failed(std::uint64_t device);

 private:
  struct Mount {
    std::optional<Tier> fastest;
    bool direct_failed = false;
  };
  mutable std::mutex mutex_;
  std::map<std::uint64_t, Mount> mounts_;
};

/// This process's.
[[nodiscard]] MountMemory& process_mount_memory();

}  // namespace wc::load
