// A thread's way into GPU memory: two pinned blocks, a stream, an event for each block. While one
// block is on its way to the GPU, the other is read into.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "memory/cuda/handles.hpp"
#include "memory/device.hpp"

namespace wc::memory::cuda {

/// `context` and the views outlive the writer. The pinned blocks come from the NUMA node of the GPU
/// with this PCI address, where the machine has several. Errors: exhausted, device.
[[nodiscard]] Result<std::unique_ptr<Writer>> make_staging_writer(const Driver& driver,
                                                                  const PrimaryContext& context,
                                                                  const std::string& pci,
                                                                  std::span<View* const> views,
                                                                  std::uint64_t block_bytes);

}  // namespace wc::memory::cuda
