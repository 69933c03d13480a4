#include "manifest/text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "manifest/limits.hpp"

namespace wc::manifest {
namespace {

constexpr std::uint64_t kHighBits = 0x8080808080808080;
constexpr std::size_t kShownBytes = 200;
constexpr std::size_t kMaxTagBytes = 32;

// The stretch from `at` on in which every byte is ASCII and, where asked for, no control character.
std::size_t ascii_run(std::string_view text, std::size_t at, bool plain) {
  const std::size_t begin = at;
  for (; text.size() - at >= 8; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + at, 8);
    // A byte below 0x20 borrows; 0x7f + 1 carries: both show in the high bits (exact as long as no
    // byte has its own high bit, which is tested too).
    const std::uint64_t controls = (word - 0x2020202020202020) | (word + 0x0101010101010101);
    if (((word | (plain ? controls : 0)) & kHighBits) != 0) break;
  }
  return at - begin;
}

template <typename Allowed>
bool all_of(std::string_view text, bool plain, Allowed allowed) {
  for (std::size_t at = 0; at < text.size();) {
    at += ascii_run(text, at, plain);
    if (at == text.size()) break;
    const CodePoint point = decode(text, at);
    if (point.bytes == 0 || !allowed(point.value)) return false;
    at += point.bytes;
  }
  return true;
}

bool control(char32_t value) { return value < 0x20 || value == 0x7f; }

}  // namespace

CodePoint decode(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t n) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[at + n]));
  };
  const char32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t bytes = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (bytes == 0 || first > 0xf4 || text.size() - at < bytes) return {};
  constexpr std::array<char32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  char32_t value = first & (0x7fU >> bytes);
  for (std::size_t n = 1; n < bytes; ++n) {
    if ((byte(n) & 0xc0) != 0x80) return {};
    value = value << 6 | (byte(n) & 0x3f);
  }
  const bool surrogate = value >= 0xd800 && value < 0xe000;
  if (value < kLeast.at(bytes) || value > 0x10ffff || surrogate) return {};
  return {value, bytes};
}

bool is_utf8(std::string_view text) {
  return all_of(text, false, [](char32_t) { return true; });
}

bool is_plain(std::string_view text) {
  return all_of(text, true, [](char32_t value) { return !control(value); });
}

bool is_printable(std::string_view text) {
  return all_of(text, true, [](char32_t value) {
    const bool c1 = value >= 0x80 && value < 0xa0;
    return !control(value) && !c1 && value != 0x2028 && value != 0x2029;
  });
}

std::string to_utf8(std::string_view text, std::size_t max_bytes) {
  constexpr std::string_view kReplacement = "\xef\xbf\xbd";
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode(text, at);
    const std::string_view piece = point.bytes == 0 ? kReplacement : text.substr(at, point.bytes);
    if (out.size() + piece.size() > max_bytes) break;
    out += piece;
    at += std::max<std::size_t>(point.bytes, 1);
  }
  return out;
}

std::string shown(std::string_view text) {
  std::string out = to_utf8(text, kShownBytes);
  for (char& byte : out) {
    if (control(static_cast<unsigned char>(byte))) byte = '?';
  }
  if (text.size() > kShownBytes) out += "...";
  return out;
}

bool is_lower_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char byte) {
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f');
  });
}

bool is_digest(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0 || colon > kMaxTagBytes) return false;
  const bool tag =
      std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(colon), [](char byte) {
        return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || byte == '-';
      });
  const std::string_view digits = text.substr(colon + 1);
  return tag && digits.size() >= 16 && text.size() <= kMaxDigestBytes && digits.size() <= 128 &&
         is_lower_hex(digits);
}

}  // namespace wc::manifest
