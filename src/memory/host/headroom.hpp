// How much host memory this process could have now without being killed for it: the least of what
// the machine has available, what its control groups leave, and how large its files may become.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"

namespace wc::memory {

/// Where the facts come from. A test gives a directory of its own, laid out like / (proc, sys), and
/// a limit of its own for files.
struct SystemFacts {
  std::string root = {};
  std::optional<std::uint64_t> file_limit_bytes = {};  // nothing: RLIMIT_FSIZE
};

struct Headroom {
  std::uint64_t bytes = 0;
  std::string limit;  // what sets it, in words: `MemAvailable`, `memory.max of control group "/a"`
};

/// The least of MemAvailable and of what every group above this process leaves. Errors: io.
[[nodiscard]] Result<Headroom> memory_headroom(const SystemFacts& facts = {});

/// Whether a file may become so large: the kernel answers a breach with SIGXFSZ, not an error.
/// Errors: exhausted.
[[nodiscard]] Result<> check_file_limit(std::uint64_t bytes, const SystemFacts& facts = {});

/// MemTotal. Errors: io.
[[nodiscard]] Result<std::uint64_t> total_memory(const SystemFacts& facts = {});

/// How much it could have of an idle machine: the least of MemTotal and of the limits of the groups
/// above this process. Errors: io.
[[nodiscard]] Result<Headroom> allowed_memory(const SystemFacts& facts = {});

}  // namespace wc::memory
