#include "daemon/foreign.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/units.hpp"

namespace wc::daemon {
namespace {

// statfs(2) lists them. The kernel writes the type of a file system, not who answers for it.
constexpr std::array<std::uint64_t, 5> kOfMemory = {
    0x01021994,  // tmpfs: memfds
    0x09041934,  // anonymous inodes
    0x444d4142,  // dma-buf
    0x858458f6,  // ramfs
    0x958458f6,  // hugetlbfs
};
constexpr std::array<std::uint64_t, 8> kAnsweredElsewhere = {
    0x65735546,  // FUSE
    0x00006969,  // NFS
    0xff534d42,  // CIFS
    0xfe534d42,  // SMB 2
    0x01021997,  // 9p
    0x00c36400,  // Ceph
    0x5346414f,  // AFS
    0x73757245,  // Coda
};

template <std::size_t N>
bool is_one_of(const std::array<std::uint64_t, N>& types, std::uint64_t type) {
  return std::ranges::find(types, type) != types.end();
}

}  // namespace

Result<> check_foreign(FdView descriptor) {
  struct statfs system{};
  if (::fstatfs(descriptor.get(), &system) != 0) return fail_errno("fstatfs of a descriptor");
  const std::uint64_t type = static_cast<std::uint32_t>(system.f_type);
  if (is_one_of(kAnsweredElsewhere, type)) {
    return fail(Code::invalid_argument,
                "the descriptor is a file that another process or machine answers for (file system "
                "{:#x}), no memory of a device",
                type);
  }
  if (is_one_of(kOfMemory, type)) return {};
  struct stat status{};
  if (::fstat(descriptor.get(), &status) != 0) return fail_errno("fstat of a descriptor");
  if (S_ISCHR(status.st_mode)) return {};
  return fail(Code::invalid_argument,
              "the descriptor (mode {:o}, file system {:#x}) is no memory of a device",
              status.st_mode, type);
}

}  // namespace wc::daemon
