// What is UTF-8, and what of it may stand in a name. Pure functions, inside this folder only.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace wc::manifest {

/// One code point: `bytes` is 0 where the text is no UTF-8 (overlong forms, surrogates, what is
/// past U+10FFFF, a sequence cut short).
struct CodePoint {
  char32_t value = 0;
  std::size_t bytes = 0;
};

/// `at` must be below text.size().
[[nodiscard]] CodePoint decode(std::string_view text, std::size_t at);

[[nodiscard]] bool is_utf8(std::string_view text);
/// UTF-8 without control characters (below U+0020, and U+007F).
[[nodiscard]] bool is_plain(std::string_view text);
/// Plain, and without the controls U+0080 to U+009F and the separators U+2028 and U+2029.
[[nodiscard]] bool is_printable(std::string_view text);
/// What is no UTF-8 becomes U+FFFD; the result ends at a code point's end within the limit.
[[nodiscard]] std::string to_utf8(std::string_view text, std::size_t max_bytes);
/// For messages: at most 200 bytes, plain whatever the text is.
[[nodiscard]] std::string shown(std::string_view text);
/// A digest with its tag: "xxh3t-4m:0123...", 16 to 128 lowercase hexadecimal digits.
[[nodiscard]] bool is_digest(std::string_view text);
[[nodiscard]] bool is_lower_hex(std::string_view text);

}  // namespace wc::manifest
