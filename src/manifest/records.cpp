#include "manifest/records.hpp"

#include <algorithm>

#include "base/units.hpp"
#include "manifest/text.hpp"

namespace wc::manifest {
namespace {

std::string numbers(std::span<const std::int64_t> values) {
  constexpr std::size_t kShownDimensions = 8;
  std::string out = "[";
  for (std::size_t at = 0; at < values.size(); ++at) {
    if (at != 0) out += ", ";
    if (at == kShownDimensions) {
      out += "...";
      break;
    }
    out += std::to_string(values[at]);
  }
  return out + "]";
}

std::string strides_text(const Pools& pools, const fb::TensorRecord& record) {
  if (record.strides_at() == kContiguous) return {};
  return format(" and strides {}",
                numbers(pools.integers.subspan(record.strides_at(), record.rank())));
}

std::string dtype_text(const fb::TensorRecord& record) {
  const auto dtype = dtype_numbered(record.dtype());
  return std::string(dtype ? name_of(*dtype) : "unknown dtype");
}

// Shape, strides and dtype in one phrase; only after their ranges were found good.
std::string layout_text(const Pools& pools, const fb::TensorRecord& record) {
  return format("shape {}{} of {}", numbers(shape_of(pools, record)), strides_text(pools, record),
                dtype_text(record));
}

std::string range_text(std::string_view what, std::uint64_t at, std::uint64_t count,
                       std::uint64_t size) {
  return format("{} from {} are past the pool's {}", format_count(count) + " " + std::string(what),
                format_count(at), format_count(size));
}

std::string index_text(const Pools& pools, const fb::TensorRecord& record, Rule rule) {
  switch (rule) {
    case Rule::segment:
      return format("segment {} of {}", record.segment(), pools.segment_used_bytes.size());
    case Rule::dtype:
      return format("dtype {} is unknown", record.dtype());
    case Rule::rank:
      return format("{} dimensions, at most {}", record.rank(), kMaxRank);
    case Rule::shape_range:
      return range_text("dimensions", record.shape_at(), record.rank(), pools.integers.size());
    case Rule::strides_range:
      return range_text("strides", record.strides_at(), record.rank(), pools.integers.size());
    case Rule::name_range:
      return range_text("bytes of name", record.name_at(), record.name_bytes(), pools.text.size());
    case Rule::name_bytes:
      return format("a name of {} bytes, 1 to {} are allowed", format_count(record.name_bytes()),
                    format_count(kMaxNameBytes));
    default:
      return format("kind {}, flags {:#x}, reserved fields {} and {}: more than this version knows",
                    record.kind(), record.flags(), record.module_at(), record.reserved_0());
  }
}

std::string layout_rule_text(const Pools& pools, const fb::TensorRecord& record, Rule rule) {
  const std::string layout = layout_text(pools, record);
  switch (rule) {
    case Rule::dimension:
      return layout + ": a dimension is negative";
    case Rule::elements:
      return layout + ": the number of elements or bytes does not fit in 63 bits";
    case Rule::stride:
      return layout + ": a stride is negative";
    case Rule::sub_byte_strides:
      return layout + ": elements of less than a byte have no strides";
    case Rule::whole_bytes:
      return layout + ": not a whole number of bytes";
    default: {
      const unsigned bits = bits_of(*dtype_numbered(record.dtype()));
      return format("{}: takes {} bytes, the record says {}", layout,
                    format_count(extent_of(pools, record, bits).bytes),
                    format_count(record.bytes()));
    }
  }
}

std::string place_text(const Pools& pools, const fb::TensorRecord& record, Rule rule) {
  const std::string range =
      format("{} bytes at offset {}", format_count(record.bytes()), format_count(record.offset()));
  switch (rule) {
    case Rule::extent:
      return format("{} are past the {} used bytes of segment {}", range,
                    format_count(pools.segment_used_bytes[record.segment()]), record.segment());
    case Rule::element_alignment:
      return format("offset {} is no multiple of the size of {}", format_count(record.offset()),
                    dtype_text(record));
    case Rule::file:
      return format("file {} at offset {}, of {} files", record.file(),
                    format_count(record.file_offset()), pools.file_bytes.size());
    default:
      return format("{} bytes at offset {} are past the {} bytes of file {}",
                    format_count(record.bytes()), format_count(record.file_offset()),
                    format_count(pools.file_bytes[record.file() - 1]), record.file() - 1);
  }
}

bool aligned(const fb::TensorRecord& record) { return record.offset() % kTensorAlignment == 0; }

bool exempt(const fb::TensorRecord& record) {
  return record.bytes() == 0 || (record.flags() & kFlagView) != 0;
}

}  // namespace

DtypeBits::DtypeBits() {
  for (unsigned number = 0; number < bits_.size(); ++number) {
    const auto dtype = dtype_numbered(number);
    if (dtype) bits_[number] = static_cast<std::uint8_t>(bits_of(*dtype));
  }
}

Extent strided_extent(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides,
                      unsigned bits) {
  const Extent contiguous = contiguous_extent(shape, bits);
  if (contiguous.rule != Rule::kept) return contiguous;
  if (bits % 8 != 0) return {Rule::sub_byte_strides, 0};
  bool overflow = false;
  std::int64_t last = 0;  // the element that lies furthest
  for (std::size_t at = 0; at < shape.size(); ++at) {
    if (strides[at] < 0) return {Rule::stride, 0};
    std::int64_t reach = 0;
    if (shape[at] != 0) overflow |= __builtin_mul_overflow(shape[at] - 1, strides[at], &reach);
    overflow |= __builtin_add_overflow(last, reach, &last);
  }
  std::uint64_t bytes = 0;
  overflow |= __builtin_mul_overflow(static_cast<std::uint64_t>(last) + 1,
                                     static_cast<std::uint64_t>(bits / 8), &bytes);
  if (contiguous.bytes == 0) return {};
  if (overflow) return {Rule::elements, 0};
  return {Rule::kept, bytes};
}

bool row_major(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides) {
  std::int64_t expected = 1;
  for (std::size_t at = shape.size(); at-- > 0;) {
    if (strides[at] != expected) return false;
    if (__builtin_mul_overflow(expected, std::max<std::int64_t>(shape[at], 1), &expected))
      return false;
  }
  return true;
}

std::string name_for_message(const Pools& pools, const fb::TensorRecord& record) {
  if (record.name_at() >= pools.text.size()) return {};
  return shown(pools.text.substr(record.name_at(), record.name_bytes()));
}

Error explain(Code code, Rule rule, const Pools& pools, const fb::TensorRecord& record) {
  const std::string what = rule <= Rule::reserved ? index_text(pools, record, rule)
                           : rule <= Rule::bytes  ? layout_rule_text(pools, record, rule)
                                                  : place_text(pools, record, rule);
  return {code, format("tensor \"{}\": {}", name_for_message(pools, record), what), {}};
}

std::optional<std::uint32_t> misaligned(std::span<const fb::TensorRecord> records) {
  const bool all = std::all_of(records.begin(), records.end(), [](const fb::TensorRecord& record) {
    return aligned(record) || exempt(record);
  });
  if (all) return std::nullopt;
  // By segment and offset: what is not aligned starts inside an aligned one if it starts before the
  // furthest end of the aligned ones so far.
  std::vector<std::uint32_t> order(records.size());
  for (std::uint32_t at = 0; at < order.size(); ++at) order[at] = at;
  std::sort(order.begin(), order.end(), [&](std::uint32_t left, std::uint32_t right) {
    const auto& a = records[left];
    const auto& b = records[right];
    return a.segment() != b.segment() ? a.segment() < b.segment() : a.offset() < b.offset();
  });
  std::uint64_t end = 0;
  std::uint32_t segment = 0;
  for (const std::uint32_t index : order) {
    const auto& record = records[index];
    if (record.segment() != segment) end = 0;
    segment = record.segment();
    if (aligned(record)) {
      end = std::max(end, record.offset() + record.bytes());
    } else if (!exempt(record) && record.offset() >= end) {
      return index;
    }
  }
  return std::nullopt;
}

Error explain_misaligned(Code code, const Pools& pools, const fb::TensorRecord& record) {
  return {code,
          format("tensor \"{}\": offset {} is no multiple of {}, and no tensor that starts on one "
                 "covers it (a slice of what is not published says that it is a view)",
                 name_for_message(pools, record), format_count(record.offset()), kTensorAlignment),
          {}};
}

}  // namespace wc::manifest
