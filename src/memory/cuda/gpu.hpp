// The GPUs that this process can see, and finding one by what a user calls it. A GPU's name across
// processes is its UUID; ordinals differ with CUDA_VISIBLE_DEVICES.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "memory/cuda/driver.hpp"

namespace wc::memory::cuda {

struct Gpu {
  CuDevice device = 0;
  int ordinal = 0;   // this process's
  std::string uuid;  // "GPU-6f1c2d3e-...", "MIG-..." for a MIG instance
  std::string name;  // "NVIDIA H200"
  std::string pci;   // "0000:3b:00.0", as in sysfs
  std::uint64_t total_bytes = 0;
  bool vmm = false;  // attributes say that memory can be mapped by hand and exported as descriptor;
                     // only a trial tells for sure
};

/// Errors: device.
[[nodiscard]] Result<std::vector<Gpu>> list_gpus(const Driver& driver);

/// `which` is "cuda:N", "N" (this process's ordinal), or a UUID with or without its prefix, whole
/// or a unique beginning of at least 4 digits. Errors: not_found, listing what is visible and what
/// CUDA_VISIBLE_DEVICES says; invalid_argument.
[[nodiscard]] Result<Gpu> find_gpu(const Driver& driver, const std::string& which);

}  // namespace wc::memory::cuda
