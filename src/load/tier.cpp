#include "load/tier.hpp"

#include <algorithm>
#include <array>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

namespace wc::load {

std::string_view name_of(Tier tier) {
  switch (tier) {
    case Tier::automatic:
      return "automatic";
    case Tier::hot:
      return "hot";
    case Tier::direct_uring:
      return "direct_uring";
    case Tier::direct:
      return "direct";
    case Tier::buffered:
      return "buffered";
  }
  return "unknown";
}

std::optional<DirectLimits> direct_limits(FdView fd) {
#ifdef STATX_DIOALIGN
  struct statx status = {};
  if (::statx(fd.get(), "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) == 0 &&
      (status.stx_mask & STATX_DIOALIGN) != 0) {
    if (status.stx_dio_offset_align == 0) return std::nullopt;
    return DirectLimits{.memory_alignment = status.stx_dio_mem_align,
                        .offset_alignment = status.stx_dio_offset_align};
  }
#endif
  return DirectLimits();
}

bool is_cached(FileCalls& calls, FdView fd, std::uint64_t offset, std::uint64_t bytes) {
  if (bytes == 0) return true;
  constexpr std::uint64_t kSamples = 4;
  for (std::uint64_t n = 0; n < kSamples; ++n) {
    std::byte byte = {};
    const iovec place = {&byte, 1};
    const std::uint64_t at = offset + (bytes - 1) * n / (kSamples - 1);
    if (calls.read(fd, std::span(&place, 1), at, RWF_NOWAIT) != 1) return false;
  }
  return true;
}

bool is_in_memory(FdView fd) {
  struct statfs status = {};
  if (::fstatfs(fd.get(), &status) != 0) return false;
  constexpr std::array<long, 3> kKinds = {TMPFS_MAGIC, RAMFS_MAGIC, HUGETLBFS_MAGIC};
  return std::ranges::count(kKinds, static_cast<long>(status.f_type)) > 0;
}

std::optional<Tier> MountMemory::fastest(std::uint64_t device) const {
  const std::scoped_lock lock(mutex_);
  const auto found = mounts_.find(device);
  return found == mounts_.end() ? std::nullopt : found->second.fastest;
}

void MountMemory::remember(std::uint64_t device, Tier fastest) {
  const std::scoped_lock lock(mutex_);
  mounts_[device].fastest = fastest;
}

bool MountMemory::direct_works(std::uint64_t device) const {
  const std::scoped_lock lock(mutex_);
  const auto found = mounts_.find(device);
  return found == mounts_.end() || !found->second.direct_failed;
}

bool MountMemory::direct_failed(std::uint64_t device) {
  const std::scoped_lock lock(mutex_);
  Mount& mount = mounts_[device];
  mount.fastest = Tier::buffered;
  return !std::exchange(mount.direct_failed, true);
}

MountMemory& process_mount_memory() {
  static MountMemory memory;
  return memory;
}

}  // namespace wc::load
