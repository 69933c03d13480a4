// What NVIDIA's management library knows of a GPU and no CUDA call tells: whether persistence mode
// is on, and which driver this is. Optional: opened at run time like the driver, and where it is
// absent there is nothing to say. For reports (`doctor`), never for decisions.
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
  bool persistence = false;
  std::uint64_t total_bytes = 0;
  std::uint64_t used_bytes = 0;  // by everybody
};

struct NvmlReport {
  std::string driver_version;  // "580.159.04"
  std::vector<NvmlGpu> gpus;
};

/// `path` is that of a libnvidia-ml.so.1; empty: the system's. Errors: unsupported (not there, or
/// it does not start: says why).
[[nodiscard]] Result<NvmlReport> ask_nvml(const std::string& path = {});

}  // namespace wc::memory::cuda
