// The rules of one tensor record, for both sides of the border: the builder asks before it writes,
// Manifest::check after it reads. Inside this folder only (it shows FlatBuffers' types).
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"
#include "base/result.hpp"
#include "manifest/limits.hpp"
#include "manifest_generated.h"

namespace wc::manifest {

static_assert(std::endian::native == std::endian::little, "vectors are read in place");

inline constexpr std::uint32_t kContiguous = 0xffffffff;  // TensorRecord::strides_at
inline constexpr std::uint8_t kFlagPersistent = 1;
inline constexpr std::uint8_t kFlagRequiresGrad = 2;
inline constexpr std::uint8_t kFlagView = 4;

/// What the records point into.
struct Pools {
  std::string_view text;
  std::span<const std::int64_t> integers;
  std::span<const std::uint64_t> segment_used_bytes;
  std::span<const std::uint64_t> file_bytes;
};

/// The first rule that a record breaks.
enum class Rule : std::uint8_t {
  kept,
  segment,
  dtype,
  rank,
  shape_range,
  strides_range,
  name_range,
  name_bytes,
  reserved,
  dimension,
  elements,
  stride,
  sub_byte_strides,
  whole_bytes,
  bytes,
  extent,
  element_alignment,
  file,
  file_range,
};

/// Bits of an element for each dtype number; 0 for a number that is none.
class DtypeBits {
 public:
  DtypeBits();
  [[nodiscard]] unsigned operator[](std::uint8_t number) const {
    return number < bits_.size() ? bits_[number] : 0;
  }

 private:
  std::array<std::uint8_t, 32> bits_{};
};

/// Elements and the bytes that they span.
struct Extent {
  Rule rule = Rule::kept;
  std::uint64_t bytes = 0;
};

/// The span of a contiguous tensor. Nothing here branches for a dimension: sums of errors are
/// looked at once.
[[nodiscard]] inline Extent contiguous_extent(std::span<const std::int64_t> shape, unsigned bits) {
  std::int64_t negative = 0;
  bool overflow = false;
  bool empty = false;
  std::int64_t elements = 1;  // the product of the dimensions other than zero
  for (const std::int64_t size : shape) {
    negative |= size;
    empty |= size == 0;
    overflow |= __builtin_mul_overflow(elements, size | std::int64_t{size == 0}, &elements);
  }
  std::uint64_t span_bits = 0;
  overflow |= __builtin_mul_overflow(static_cast<std::uint64_t>(elements),
                                     static_cast<std::uint64_t>(bits), &span_bits);
  if ((negative < 0) | overflow) [[unlikely]] {
    return {negative < 0 ? Rule::dimension : Rule::elements, 0};
  }
  if (empty) return {};
  if (span_bits % 8 != 0) [[unlikely]]
    return {Rule::whole_bytes, 0};
  return {Rule::kept, span_bits / 8};
}

/// The span of a tensor with strides, from its first to its last element's end.
[[nodiscard]] Extent strided_extent(std::span<const std::int64_t> shape,
                                    std::span<const std::int64_t> strides, unsigned bits);

/// Whether these strides are those of a contiguous, row-major tensor, exactly.
[[nodiscard]] bool row_major(std::span<const std::int64_t> shape,
                             std::span<const std::int64_t> strides);

[[nodiscard]] inline std::span<const std::int64_t> shape_of(const Pools& pools,
                                                            const fb::TensorRecord& record) {
  return pools.integers.subspan(record.shape_at(), record.rank());
}

[[nodiscard]] inline Extent extent_of(const Pools& pools, const fb::TensorRecord& record,
                                      unsigned bits) {
  const auto shape = shape_of(pools, record);
  if (record.strides_at() == kContiguous) [[likely]]
    return contiguous_extent(shape, bits);
  return strided_extent(shape, pools.integers.subspan(record.strides_at(), record.rank()), bits);
}

/// Whether `count` things from `at` on are all below `size`.
[[nodiscard]] inline bool within(std::uint64_t at, std::uint64_t count, std::uint64_t size) {
  return count <= size && at <= size - count;
}

/// Extents that were good, by what they were computed from: thousands of tensors share a few
/// shapes. Of one Pools alone.
class ExtentMemo {
 public:
  [[nodiscard]] Extent operator()(const Pools& pools, const fb::TensorRecord& record,
                                  unsigned bits) {
    if (record.strides_at() != kContiguous) return extent_of(pools, record, bits);
    const std::uint64_t key =
        record.shape_at() | std::uint64_t{record.rank()} << 32 | std::uint64_t{bits} << 40;
    Slot& slot = slots_[(key * 0x9e3779b97f4a7c15) >> (64 - kSlotBits)];
    if (slot.key == key) return {Rule::kept, slot.bytes};
    const Extent extent = extent_of(pools, record, bits);
    if (extent.rule == Rule::kept) slot = {key, extent.bytes};
    return extent;
  }

 private:
  static constexpr unsigned kSlotBits = 6;
  struct Slot {
    std::uint64_t key = ~std::uint64_t{0};  // of no record
    std::uint64_t bytes = 0;
  };
  std::array<Slot, std::size_t{1} << kSlotBits> slots_;
};

/// Everything that a reader would follow: indices, ranges, the shape's bytes, the segment's bounds.
/// `extent_for` is extent_of, or a memo of it.
template <typename ExtentFor>
[[nodiscard]] Rule broken_rule(const Pools& pools, const DtypeBits& dtypes,
                               const fb::TensorRecord& record, ExtentFor&& extent_for) {
  const std::size_t integers = pools.integers.size();
  if (record.segment() >= pools.segment_used_bytes.size()) return Rule::segment;
  const unsigned bits = dtypes[record.dtype()];
  if (bits == 0) return Rule::dtype;
  if (record.rank() > kMaxRank) return Rule::rank;
  if (!within(record.shape_at(), record.rank(), integers)) return Rule::shape_range;
  if (record.strides_at() != kContiguous && !within(record.strides_at(), record.rank(), integers))
    return Rule::strides_range;
  if (!within(record.name_at(), record.name_bytes(), pools.text.size())) return Rule::name_range;
  if (record.name_bytes() - 1 >= kMaxNameBytes) return Rule::name_bytes;
  const bool flags = record.flags() > (kFlagPersistent | kFlagRequiresGrad | kFlagView);
  if (record.kind() > 1 || flags || (record.module_at() | record.reserved_0()) != 0)
    return Rule::reserved;
  const Extent extent = extent_for(pools, record, bits);
  if (extent.rule != Rule::kept) return extent.rule;
  if (record.bytes() != extent.bytes) return Rule::bytes;
  if (!within(record.offset(), extent.bytes, pools.segment_used_bytes[record.segment()]))
    return Rule::extent;
  if (extent.bytes != 0 && bits >= 8 && (record.offset() & (bits / 8 - 1)) != 0)
    return Rule::element_alignment;
  if (record.file() == 0) return record.file_offset() == 0 ? Rule::kept : Rule::file;
  if (record.file() > pools.file_bytes.size()) return Rule::file;
  const std::uint64_t file_bytes = pools.file_bytes[record.file() - 1];
  return within(record.file_offset(), extent.bytes, file_bytes) ? Rule::kept : Rule::file_range;
}

/// The record's name as far as it lies in the pool, fit for a message.
[[nodiscard]] std::string name_for_message(const Pools& pools, const fb::TensorRecord& record);

/// `tensor "x": ...` with the numbers of the rule that it breaks.
[[nodiscard]] Error explain(Code code, Rule rule, const Pools& pools,
                            const fb::TensorRecord& record);

/// The alignment rule: a tensor with bytes starts on a multiple of 512, or inside the bytes of one
/// that does, or says that it is a view. The first that does not; nothing where all do.
[[nodiscard]] std::optional<std::uint32_t> misaligned(std::span<const fb::TensorRecord> records);
[[nodiscard]] Error explain_misaligned(Code code, const Pools& pools,
                                       const fb::TensorRecord& record);

}  // namespace wc::manifest
