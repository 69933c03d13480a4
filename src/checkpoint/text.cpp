#include "checkpoint/text.hpp"

#include <algorithm>
#include <cstring>

#include "base/error.hpp"
#include "base/units.hpp"

namespace wc::checkpoint {
namespace {

constexpr std::size_t kShownBytes = 200;

unsigned byte_at(std::string_view text, std::size_t at) {
  return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U;
}

// Length of the well-formed sequence that starts here, 0 where none does (table 3-7 of Unicode).
std::size_t sequence_length(std::string_view text, std::size_t at) {
  const unsigned first = byte_at(text, at);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  const std::size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  unsigned low = 0x80;
  unsigned high = 0xBF;
  if (first == 0xE0) low = 0xA0;
  if (first == 0xED) high = 0x9F;
  if (first == 0xF0) low = 0x90;
  if (first == 0xF4) high = 0x8F;
  for (std::size_t more = 1; more < length; ++more) {
    const unsigned next = byte_at(text, at + more);
    if (next < low || next > high) return 0;
    low = 0x80;
    high = 0xBF;
  }
  return length;
}

// C1 controls, U+0080 to U+009F, are C2 80 to C2 9F.
bool is_control(std::string_view text, std::size_t at) {
  const unsigned byte = byte_at(text, at);
  if (byte == 0xC2) return byte_at(text, at + 1) < 0xA0;
  return byte < 0x20 || byte == 0x7F;
}

// How many bytes at the start are, by words of eight, plain ASCII beyond doubt: no byte has its
// high bit, now, or less 0x20 (a control), or plus 1 (DEL). A borrow or a carry only makes it stop
// early.
std::size_t plain_words(std::string_view text) {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  std::size_t at = 0;
  for (; at + sizeof(std::uint64_t) <= text.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + at, sizeof word);
    if (((word | (word - 0x20 * kOnes) | (word + kOnes)) & 0x80 * kOnes) != 0) break;
  }
  return at;
}

}  // namespace

std::string in_quotes(std::string_view text) {
  std::string shown = "\"";
  std::size_t at = 0;
  while (at < text.size() && shown.size() <= kShownBytes) {
    const std::size_t length = sequence_length(text, at);
    const bool plain = length > 0 && !is_control(text, at);
    if (plain) {
      if (text[at] == '"' || text[at] == '\\') shown += '\\';
      shown += text.substr(at, length);
    } else {
      for (std::size_t part = 0; part < std::max<std::size_t>(length, 1); ++part) {
        shown += format("\\x{:02X}", byte_at(text, at + part));
      }
    }
    at += std::max<std::size_t>(length, 1);
  }
  shown += '"';
  if (at < text.size()) shown += format("... ({} bytes)", format_count(text.size()));
  return shown;
}

std::optional<std::size_t> first_invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = sequence_length(text, at);
    if (length == 0) return at;
    at += length;
  }
  return std::nullopt;
}

std::optional<std::size_t> first_control(std::string_view text) {
  for (std::size_t at = plain_words(text); at < text.size(); ++at) {
    if (is_control(text, at)) return at;
  }
  return std::nullopt;
}

std::optional<std::size_t> nested_past(std::string_view json, unsigned levels) {
  unsigned depth = 0;
  bool inside_text = false;
  for (std::size_t at = 0; at < json.size(); ++at) {
    const char byte = json[at];
    if (inside_text) {
      if (byte == '\\') ++at;
      inside_text = byte != '"';
    } else if (byte == '"') {
      inside_text = true;
    } else if (byte == '{' || byte == '[') {
      if (++depth > levels) return at;
    } else if ((byte == '}' || byte == ']') && depth > 0) {
      --depth;
    }
  }
  return std::nullopt;
}

std::optional<std::size_t> first_bare_control(std::string_view json) {
  bool inside_text = false;
  for (std::size_t at = 0; at < json.size(); ++at) {
    if (inside_text && byte_at(json, at) < 0x20) return at;
    if (inside_text && json[at] == '\\') {
      ++at;
    } else if (json[at] == '"') {
      inside_text = !inside_text;
    }
  }
  return std::nullopt;
}

std::string hex_byte(char byte) {
  return format("0x{:02X}", static_cast<unsigned>(static_cast<unsigned char>(byte)));
}

bool is_hex(std::string_view text, std::size_t digits) {
  return text.size() == digits && std::all_of(text.begin(), text.end(), [](char digit) {
           return (digit >= '0' && digit <= '9') || (digit >= 'a' && digit <= 'f');
         });
}

}  // namespace wc::checkpoint
