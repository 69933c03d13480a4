#include "api/structs.hpp"

#include <span>

#include "base/units.hpp"

namespace wc::api {

Result<> check_struct_size(std::size_t struct_size, std::string_view type) {
  if (struct_size < sizeof(std::size_t) || struct_size > kMaxStructBytes)
    return fail(Code::invalid_argument,
                "the struct_size of a {} is {}: set it to sizeof({}), or begin with its INIT macro",
                type, format_count(struct_size), type);
  return {};
}

Result<> check_unknown_members(const void* given, std::size_t struct_size, std::size_t known_bytes,
                               std::string_view type) {
  if (struct_size <= known_bytes) return {};
  const auto unknown =
      std::span(static_cast<const std::byte*>(given), struct_size).subspan(known_bytes);
  const bool zero = std::ranges::all_of(unknown, [](std::byte b) { return b == std::byte{0}; });
  if (!zero)
    return fail(Code::unsupported,
                "a {} of {} bytes has members set that this library, which knows {} bytes, does "
                "not know: upgrade libweightcache",
                type, struct_size, known_bytes);
  return {};
}

}  // namespace wc::api
