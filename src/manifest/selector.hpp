// What a user names an entry with: NAME, NAME@GENERATION, @FINGERPRINT (a unique prefix), or the
// checkpoint's path. Which of them a text is, its syntax alone decides. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace wc::manifest {

struct Selector {
  enum class Kind : std::uint8_t { name, fingerprint, path };
  Kind kind = Kind::name;
  std::string text{};  // the name, the prefix (4 to 32 lowercase hexadecimal digits), or the path
  std::optional<std::uint64_t> generation{};  // of a name; at least 1
  bool operator==(const Selector&) const = default;
};

/// A path is what is `.`, `..` or `~`, or starts with `/`, `./`, `../` or `~/`; `org/name` is a
/// name. Errors: invalid_argument, saying which rule is broken.
[[nodiscard]] Result<Selector> parse_selector(std::string_view text);

/// As parse_selector() reads it.
[[nodiscard]] std::string to_string(const Selector& selector);

/// 1 to 256 bytes of printable UTF-8: no control characters, no `@`, no space at either end; no
/// leading `-` or `~`; at most one `/`, as in `org/name`, neither part empty, `.` or `..`.
/// Errors: invalid_argument, saying which rule is broken.
[[nodiscard]] Result<> valid_name(std::string_view text);

/// Up to 3 of the candidates that are near to what was typed, nearest first, for `not_found`
/// messages; the part after the `/` counts as a name too.
[[nodiscard]] std::vector<std::string> nearest(std::string_view name,
                                               std::span<const std::string> candidates);

}  // namespace wc::manifest
