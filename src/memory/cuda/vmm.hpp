// Exportable physical memory (cuMemCreate) and its mappings: the Segment and View of a GPU.
#pragma once

#include <memory>

#include "memory/cuda/gpu.hpp"
#include "memory/cuda/handles.hpp"
#include "memory/device.hpp"

namespace wc::memory::cuda {

/// Bits of Segment.flags in the manifest.
inline constexpr std::uint64_t kFlagGpuDirectRdma = 1;
inline constexpr std::uint64_t kFlagFabric = 4;

/// How memory is created on one GPU: found out by trial, since capability attributes are known to
/// promise what creation then refuses (fabric handles on an H200, driver 580).
struct Recipe {
  CuMemAllocationProp prop;
  std::uint64_t flags = 0;  // as in the manifest
};

/// What sizes are multiples of. Errors: unsupported (this driver, or this GPU, can't export memory:
/// says what is left), device.
[[nodiscard]] Result<std::size_t> granularity_of(const Driver& driver, const Gpu& gpu);

/// Tries the richest flags first, on one granule. Errors: unsupported (no memory of this kind can
/// be made here), exhausted, device.
[[nodiscard]] Result<Recipe> find_recipe(const Driver& driver, const Gpu& gpu);

/// Makes one granule and exports it, without a context (driver 580: about 4 MiB of the GPU's memory
/// for a moment): whether segments can be had here, and their flags. Errors: as find_recipe.
[[nodiscard]] Result<std::uint64_t> try_exporting(const Driver& driver, const Gpu& gpu);

/// Errors: exhausted, device; the caller adds how much was free.
[[nodiscard]] Result<std::unique_ptr<Segment>> create_segment(const Driver& driver,
                                                              const Recipe& recipe,
                                                              std::uint64_t bytes);

/// Of a segment that create_segment made in this process, for writing. `address` 0: any.
[[nodiscard]] Result<std::unique_ptr<View>> map_segment(const Driver& driver,
                                                        const PrimaryContext& context,
                                                        Segment& segment, std::uint64_t address);

/// Of another process's, taken over as a descriptor. The size is what the sender says; the driver
/// refuses any other than the memory's, and what is no memory (`corrupt`).
[[nodiscard]] Result<std::unique_ptr<View>> import_segment(const Driver& driver,
                                                           const PrimaryContext& context, Fd fd,
                                                           const ImportOptions& options);

}  // namespace wc::memory::cuda
