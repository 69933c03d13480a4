// The CUDA driver, the GPUs, and which transports they can do.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "doctor/machine.hpp"
#include "memory/cuda/gpu.hpp"
#include "memory/cuda/nvml.hpp"

namespace wc::doctor {

/// What of an NVIDIA driver shows in the file system, without asking it.
struct DriverTraces {
  std::size_t kernel_gpus = 0;            // that the kernel's module drives, in any container
  std::vector<std::string> nodes = {};    // "/dev/nvidia0", ...
  std::vector<std::string> refused = {};  // of those, the ones that this user may not open
  bool control = false;                   // /dev/nvidiactl
  bool uvm = false;                       // /dev/nvidia-uvm
};

struct GpuTrial {
  memory::cuda::Gpu gpu = {};
  Result<std::uint64_t> exporting = std::uint64_t{0};  // flags of segments, where one could be made
};

struct GpuAreaFacts {
  DriverTraces traces = {};
  Result<int> driver = 0;  // 13000 for CUDA 13.0
  std::vector<GpuTrial> gpus = {};
  Result<memory::cuda::NvmlReport> nvml = memory::cuda::NvmlReport{};
  std::optional<std::string> visible_devices = {};  // CUDA_VISIBLE_DEVICES
};

[[nodiscard]] GpuAreaFacts gather_gpus(const Machine& machine);
void judge_gpus(const GpuAreaFacts& facts, Diagnosis& diagnosis);

}  // namespace wc::doctor
