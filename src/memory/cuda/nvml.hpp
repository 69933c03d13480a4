// What NVIDIA's management library knows of a GPU and no CUDA call tells: whether persistence mode
// is on, how much everybody uses, and which driver this is. Optional: opened at run time like the
// driver, and where it is absent there is nothing to say. It maps no libcuda and makes no context.
// For reports (`doctor`, `status`), never for decisions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace wc::memory::cuda {

struct NvmlGpu {
  std::string uuid;
  std::string name;
  std::optional<bool> persistence_mode;  // empty: not to be told here
  std::optional<bool> mig_mode;          // empty: a GPU without MIG
  std::optional<bool> mig_pending;       // after its next reset
  std::uint64_t total_bytes = 0;         // 0: not to be told
  std::uint64_t used_bytes = 0;          // by everybody, what the driver keeps included
};

struct NvmlReport {
  std::string driver_version;  // "580.159.04"
  std::vector<NvmlGpu> gpus;   // those that this process may ask about
};

/// `path` is that of a libnvidia-ml.so.1; empty: $WEIGHTCACHE_LIBNVML, else the system's.
/// Errors: unsupported (not there, or it does not start: says why).
[[nodiscard]] Result<NvmlReport> ask_nvml(const std::string& path = {});

}  // namespace wc::memory::cuda
