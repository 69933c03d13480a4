// GPU memory as a memory::Device, on the `vmm_fd` transport: physical memory made by cuMemCreate,
// exported as a descriptor by its creator, mapped read-only by its readers. Holds the GPU's primary
// context, which is shared with whatever framework is in the process.
//
// What it refuses to do: sub-allocate (a tensor is an offset in a segment), or map a part.
#pragma once

#include <memory>
#include <string>

#include "memory/cuda/driver.hpp"
#include "memory/cuda/gpu.hpp"
#include "memory/device.hpp"

namespace wc::memory::cuda {

/// Opens the GPU that `which` names (see find_gpu). The driver outlives the device.
/// Errors: not_found, unsupported (memory can't be exported here: says why), device.
[[nodiscard]] Result<std::unique_ptr<Device>> open_cuda_device(std::shared_ptr<const Driver> driver,
                                                               const std::string& which);

}  // namespace wc::memory::cuda
