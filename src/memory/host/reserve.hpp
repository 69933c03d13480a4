// Host memory for a segment, every page of it there before this returns. The control group of the
// process that calls this pays for the pages, also after its death: so the daemon's helper calls
// it. It does what it can to fail with an error where the kernel would kill: past a group's limit
// fallocate ends in SIGKILL, past RLIMIT_FSIZE in SIGXFSZ.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/fd.hpp"
#include "base/result.hpp"
#include "memory/host/headroom.hpp"

namespace wc::memory {

struct ReserveOptions {
  bool huge_pages = true;                               // where the kernel has MADV_COLLAPSE (6.1)
  std::uint64_t step_bytes = std::uint64_t{256} << 20;  // between two looks at what is left
  std::string name = "weightcache";                     // as /proc shows it
  /// After each step, with the bytes reserved so far.
  std::function<void(std::uint64_t done_bytes)> progress = {};
  SystemFacts facts = {};
};

/// A memfd of this size, open for reading and writing, not sealed. Errors: exhausted (with the
/// bytes needed, the bytes free, and the limit), invalid_argument (0 bytes), io. After an error
/// nothing is left reserved.
[[nodiscard]] Result<Fd> reserve_host(std::uint64_t bytes, const ReserveOptions& options = {});

/// Whether host memory gets huge pages here: tries it on one. Errors: unsupported, io (the trial
/// itself failed).
[[nodiscard]] Result<> try_huge_pages();

}  // namespace wc::memory
