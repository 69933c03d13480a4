// Where a file's tensors lie: each one's size against its dtype and shape, and all together against
// the data, which they cover without hole or overlap. Pure; every sum and product is checked.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "checkpoint/header.hpp"

namespace wc::checkpoint {

/// Rules 16 and 17: the bytes of a tensor of this dtype and shape. Errors: corrupt.
[[nodiscard]] Result<std::uint64_t> bytes_of(Dtype dtype, std::span<const std::int64_t> shape);

/// By begin, then by end, then by name.
void sort_by_place(std::vector<HeaderTensor>& tensors);

/// Rules 16 to 23, of tensors sorted by place. Gives the bytes after the last tensor, which are
/// refused unless `allow_trailing`. Errors: corrupt.
[[nodiscard]] Result<std::uint64_t> check_layout(std::span<const HeaderTensor> tensors,
                                                 std::uint64_t data_bytes, bool allow_trailing);

}  // namespace wc::checkpoint
