// Text that came from a file: looked at byte by byte where a message needs the place of a fault,
// and made fit to stand in a message. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace wc::checkpoint {

/// In double quotes; control characters, quotes, backslashes and what is no UTF-8 as escapes, cut
/// after some 200 bytes: whatever a file holds, a message stays one readable line.
[[nodiscard]] std::string in_quotes(std::string_view text);

/// The place of the first byte that belongs to no well-formed UTF-8 sequence (overlong forms and
/// surrogates are none).
[[nodiscard]] std::optional<std::size_t> first_invalid_utf8(std::string_view text);

/// The place of the first control character of valid UTF-8: C0, DEL, or C1.
[[nodiscard]] std::optional<std::size_t> first_control(std::string_view text);

/// The place of the bracket that opens level `levels + 1` of a JSON text, well-formed or not.
[[nodiscard]] std::optional<std::size_t> nested_past(std::string_view json, unsigned levels);

/// The place of the first byte below 0x20 inside a quoted text of a JSON text.
[[nodiscard]] std::optional<std::size_t> first_bare_control(std::string_view json);

/// Space, tab, line feed, carriage return.
[[nodiscard]] constexpr bool is_json_space(char byte) {
  return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

/// 0x0A -> "0x0A".
[[nodiscard]] std::string hex_byte(char byte);

/// Whether all of it is `digits` characters of 0-9, a-f.
[[nodiscard]] bool is_hex(std::string_view text, std::size_t digits);

}  // namespace wc::checkpoint
