#include "cli/text.hpp"

#include <algorithm>

#include <wchar.h>

#include "base/units.hpp"

namespace wc::cli {
namespace {

struct Character {
  char32_t code = 0;
  std::size_t bytes = 1;
  bool valid = false;
};

bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

// The character at the start of a text that is not empty. Overlong forms, surrogates and what lies
// beyond U+10FFFF are invalid, one byte at a time.
Character first_of(std::string_view text) {
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const auto lead = static_cast<unsigned char>(text.front());
  if (lead < 0x80) return {lead, 1, true};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
  if (bytes == 1 || lead > 0xF4 || text.size() < bytes) return {};
  char32_t code = lead & (0xFFU >> (bytes + 1));
  for (std::size_t at = 1; at < bytes; ++at) {
    if (!continues(text[at])) return {};
    code = (code << 6U) | (static_cast<unsigned char>(text[at]) & 0x3FU);
  }
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < kSmallest[bytes] || code > 0x10FFFF || surrogate) return {};
  return {code, bytes, true};
}

bool is_control(char32_t code) {
  const bool c0_or_c1 = code < 0x20 || (code >= 0x7F && code < 0xA0);
  const bool turns_direction =
      (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
  return c0_or_c1 || turns_direction || code == 0x2028 || code == 0x2029;
}

std::size_t cells_of(const Character& character) {
  const int width = ::wcwidth(static_cast<wchar_t>(character.code));
  return width < 0 ? 1 : static_cast<std::size_t>(width);
}

}  // namespace

std::string printable(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  while (!text.empty()) {
    const Character character = first_of(text);
    if (character.valid && !is_control(character.code)) {
      safe += text.substr(0, character.bytes);
    } else {
      for (const char byte : text.substr(0, character.bytes)) {
        safe += format("\\x{:02x}", static_cast<unsigned char>(byte));
      }
    }
    text.remove_prefix(character.bytes);
  }
  return safe;
}

std::size_t cells(std::string_view text) {
  std::size_t sum = 0;
  while (!text.empty()) {
    const Character character = first_of(text);
    sum += cells_of(character);
    text.remove_prefix(character.bytes);
  }
  return sum;
}

std::string clipped(std::string_view text, std::size_t limit) {
  if (cells(text) <= limit) return std::string(text);
  if (limit == 0) return {};
  std::string kept;
  std::size_t used = 0;
  while (!text.empty()) {
    const Character character = first_of(text);
    used += cells_of(character);
    if (used + 1 > limit) break;
    kept += text.substr(0, character.bytes);
    text.remove_prefix(character.bytes);
  }
  return kept + "…";
}

std::string wrapped(std::string_view text, std::size_t limit, std::size_t indent) {
  std::string lines;
  std::size_t column = indent;
  bool starts = true;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    const std::size_t width = cells(word);
    if (!starts && column + 1 + width > limit) {
      lines += '\n';
      lines.append(indent, ' ');
      column = indent;
      starts = true;
    }
    if (!starts) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += width;
    starts = false;
  }
  return lines;
}

std::string counted(std::uint64_t count, std::string_view noun) {
  return format("{} {}{}", format_count(count), noun, count == 1 ? "" : "s");
}

std::string age(std::int64_t since_unix_ns, std::int64_t now_unix_ns) {
  if (since_unix_ns <= 0) return "-";
  const std::int64_t passed = std::max<std::int64_t>(0, now_unix_ns - since_unix_ns);
  constexpr std::int64_t kSecond = 1'000'000'000;
  constexpr std::int64_t kHour = 3600 * kSecond;
  if (passed < 60 * kSecond) return format("{} s", passed / kSecond);
  if (passed >= 48 * kHour) return format("{} days", passed / (24 * kHour));
  return format_duration(std::chrono::nanoseconds(passed));
}

std::int64_t now_unix_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

double seconds_of(std::uint64_t ns) { return static_cast<double>(ns) / 1e9; }

}  // namespace wc::cli
