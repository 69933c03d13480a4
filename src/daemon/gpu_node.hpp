// An open descriptor of a GPU's device file. While somebody holds one, the kernel's driver does not
// stop that GPU, which with persistence mode off would end the memory that only descriptors keep.
// Opening the file is no CUDA call and takes no GPU memory.
#pragma once

#include <string>
#include <vector>

#include "base/fd.hpp"

namespace wc::daemon {

struct GpuNodeRoots {
  std::string proc = "/proc/driver/nvidia/gpus";
  std::string dev = "/dev";
};

/// The device files to hold for the GPU with this UUID: its own, or, where no GPU of this machine
/// has it (a MIG instance), every GPU's. Nothing for "cpu", and where there is no NVIDIA driver.
/// Files that can't be opened are left out: holding them is a precaution and no promise.
[[nodiscard]] std::vector<Fd> hold_gpu(const std::string& uuid, const GpuNodeRoots& roots = {});

}  // namespace wc::daemon
