// What the control groups of this process allow it: limits and use of memory, of its own group and
// of every ancestor, in the hierarchies of version 2 and 1. Reads /proc and /sys, keeps nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace wc::memory {

/// One limit of one group.
struct GroupLimit {
  std::string group;  // "/system.slice/weightcache.service"
  std::string limit;  // the file that says it: "memory.max"
  std::uint64_t limit_bytes = 0;
  std::uint64_t used_bytes = 0;         // by the group, page cache included
  std::uint64_t reclaimable_bytes = 0;  // of those, page cache that the kernel would give up
};

/// Limits that are set; groups without one are left out. `root` stands before every path ("" is the
/// system's own); tests give a directory of theirs. A system without control groups has none.
/// Errors: io (a limit is there and can't be read).
[[nodiscard]] Result<std::vector<GroupLimit>> memory_limits(const std::string& root);

}  // namespace wc::memory
