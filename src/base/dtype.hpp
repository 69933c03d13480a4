// The closed set of element types of the safetensors format (the reader refuses any other), with
// their sizes in bits. The numbers are part of the manifest's format and of the C ABI: never
// renumbered.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace wc {

enum class Dtype : std::uint8_t {
  boolean = 1,
  f4 = 2,  // two values in a byte
  f6_e2m3 = 3,
  f6_e3m2 = 4,
  u8 = 5,
  i8 = 6,
  f8_e5m2 = 7,
  f8_e4m3 = 8,
  f8_e8m0 = 9,
  f8_e4m3fnuz = 10,
  f8_e5m2fnuz = 11,
  i16 = 12,
  u16 = 13,
  f16 = 14,
  bf16 = 15,
  i32 = 16,
  u32 = 17,
  f32 = 18,
  c64 = 19,
  f64 = 20,
  i64 = 21,
  u64 = 22,
};

/// As in the files: "BF16".
[[nodiscard]] std::string_view name_of(Dtype dtype);
[[nodiscard]] unsigned bits_of(Dtype dtype);
/// Case-sensitive; nothing for a name outside the set.
[[nodiscard]] std::optional<Dtype> dtype_named(std::string_view name);
/// Nothing for a number outside the set.
[[nodiscard]] std::optional<Dtype> dtype_numbered(unsigned number);

}  // namespace wc
