// Sorting names: many, long, and alike in front ("model.layers.17.mlp.experts.42..."). Inside this
// folder only.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace wc::manifest {

/// The indices of the names in ascending order of their bytes; equal ones in order of index. The
/// names must hold no NUL.
[[nodiscard]] std::vector<std::uint32_t> sorted_by_name(std::span<const std::string_view> names);

}  // namespace wc::manifest
