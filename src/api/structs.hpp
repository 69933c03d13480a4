// Structs that may grow, across the border. A caller compiled against an older header passes a
// shorter struct: the members that it lacks are defaults, and none is written. One compiled against
// a newer header passes a longer one: what this library does not know must be zero.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "base/result.hpp"

namespace wc::api {

/// No struct of the ABI comes near it; a larger size is a member that was never set.
inline constexpr std::size_t kMaxStructBytes = 4096;

/// Errors: invalid_argument (a size that no struct has), unsupported (set members that this library
/// does not know).
[[nodiscard]] Result<> check_struct_size(std::size_t struct_size, std::string_view type);
[[nodiscard]] Result<> check_unknown_members(const void* given, std::size_t struct_size,
                                             std::size_t known_bytes, std::string_view type);

/// The struct that a caller gave, whole; `type` is its name, for messages. Errors: as above, and
/// invalid_argument for NULL.
template <typename T>
[[nodiscard]] Result<T> take_struct(const T* given, std::string_view type) {
  static_assert(std::is_trivially_copyable_v<T> && offsetof(T, struct_size) == 0);
  if (given == nullptr) return fail(Code::invalid_argument, "the {} is NULL", type);
  const std::size_t bytes = given->struct_size;
  TRY(check_struct_size(bytes, type));
  TRY(check_unknown_members(given, bytes, sizeof(T), type));
  T known{};
  std::memcpy(&known, given, std::min(bytes, sizeof(T)));
  known.struct_size = sizeof(T);
  return known;
}

/// The same where NULL means all defaults.
template <typename T>
[[nodiscard]] Result<T> take_struct_or_default(const T* given, std::string_view type) {
  if (given != nullptr) return take_struct(given, type);
  T known{};
  known.struct_size = sizeof(T);
  return known;
}

/// Fills a caller's struct, as much of it as it has; its `struct_size` stays. Errors: as above.
template <typename T>
[[nodiscard]] Result<> give_struct(T* out, const T& filled, std::string_view type) {
  static_assert(std::is_trivially_copyable_v<T> && offsetof(T, struct_size) == 0);
  if (out == nullptr) return fail(Code::invalid_argument, "the {} is NULL", type);
  const std::size_t bytes = out->struct_size;
  if (bytes == sizeof(T)) [[likely]] {
    *out = filled;
    out->struct_size = bytes;
    return {};
  }
  TRY(check_struct_size(bytes, type));
  std::memset(static_cast<void*>(out), 0, bytes);
  std::memcpy(out, &filled, std::min(bytes, sizeof(T)));
  out->struct_size = bytes;
  return {};
}

}  // namespace wc::api
