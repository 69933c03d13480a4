#include "checkpoint/header.hpp"

#include <algorithm>
#include <cstring>

#include "base/units.hpp"
#include "checkpoint/header_table.hpp"
#include "checkpoint/json.hpp"
#include "checkpoint/layout.hpp"
#include "checkpoint/text.hpp"

namespace wc::checkpoint {
namespace {

constexpr unsigned kMaxLevels = 3;

// Rule 5, of what stands behind the object's last byte.
Result<> check_padding(std::string_view header, std::size_t object_end, const HeaderRules& rules) {
  for (std::size_t at = object_end; at < header.size(); ++at) {
    const char byte = header[at];
    if (byte == ' ' || (rules.compat && is_json_space(byte))) continue;
    return fail(Code::corrupt,
                "byte {} of the header, after the object, is {}: only spaces may "
                "follow it{}",
                format_count(at), hex_byte(byte),
                is_json_space(byte) ? " (compat passes over white space)" : "");
  }
  return {};
}

}  // namespace

struct HeaderParser::State {
  JsonBuffer buffer;
  JsonReader reader{"header"};

  Result<Header> parse(const HeaderRules& rules);
};

Result<Header> HeaderParser::State::parse(const HeaderRules& rules) {
  const std::string_view header = buffer.text();
  TRY(check_header_start(header, rules));
  const std::size_t begin = std::min(header.find('{'), header.size());
  std::size_t end = header.size();
  while (end > begin && (is_json_space(header[end - 1]) || header[end - 1] == '\0')) --end;
  // simdjson reads up to kJsonPadding bytes further on; they are in the buffer, and no part of it.
  const std::string_view object = header.substr(begin, end - begin);
  HeaderTable table(reader, rules, object.size());
  const auto read = reader.read(
      object, [&table](std::string_view name, JsonValue value) { return table.add(name, value); });
  if (!read) {
    // Whatever else is wrong with a text of brackets within brackets: this is what it is.
    if (const auto at = nested_past(object, kMaxLevels)) {
      return fail(Code::corrupt, "the header is nested deeper than {} levels at byte {}",
                  kMaxLevels, format_count(*at + begin));
    }
    return Failure(read.error());
  }
  TRY(check_padding(header, end, rules));
  TRY(table.finish());
  return std::move(table).take();
}

HeaderParser::HeaderParser() : state_(std::make_unique<State>()) {}
HeaderParser::~HeaderParser() = default;
HeaderParser::HeaderParser(HeaderParser&&) noexcept = default;
HeaderParser& HeaderParser::operator=(HeaderParser&&) noexcept = default;

std::span<char> HeaderParser::room(std::uint64_t header_bytes) {
  return state_->buffer.resize(header_bytes);
}

Result<Header> HeaderParser::parse_room(std::uint64_t file_bytes, const HeaderRules& rules) {
  Header header = TRY(state_->parse(rules));
  header.data_offset = kLengthBytes + state_->buffer.text().size();
  header.trailing_bytes =
      TRY(check_layout(header.tensors, file_bytes - header.data_offset, rules.allow_trailing));
  return header;
}

Result<Header> HeaderParser::parse(std::span<const std::byte> file, std::uint64_t file_bytes,
                                   const HeaderRules& rules) {
  const std::uint64_t length = TRY(header_length(file, file_bytes));
  if (file.size() - kLengthBytes < length) {
    return fail(Code::corrupt, "only {} of the header's {} bytes are there",
                format_count(file.size() - kLengthBytes), format_count(length));
  }
  std::memcpy(room(length).data(), file.data() + kLengthBytes, length);
  return parse_room(file_bytes, rules);
}

Result<std::uint64_t> header_length(std::span<const std::byte> first_bytes,
                                    std::uint64_t file_bytes) {
  if (file_bytes < kLengthBytes || first_bytes.size() < kLengthBytes) {
    return fail(Code::corrupt, "it is {} bytes long, too short for the header's length ({} bytes)",
                format_count(std::min<std::uint64_t>(file_bytes, first_bytes.size())),
                kLengthBytes);
  }
  std::uint64_t length = 0;
  for (std::size_t at = kLengthBytes; at > 0; --at) {
    length = length << 8 | std::to_integer<std::uint64_t>(first_bytes[at - 1]);
  }
  if (length > kMaxHeaderBytes) {
    return fail(Code::corrupt, "the header's length {} is past the limit of {} bytes",
                format_count(length), format_count(kMaxHeaderBytes));
  }
  if (length > file_bytes - kLengthBytes) {
    return fail(Code::corrupt, "the header's length {} is past the file's end: {} bytes follow it",
                format_count(length), format_count(file_bytes - kLengthBytes));
  }
  if (length < 2) {
    return fail(Code::corrupt, "the header's length {} is too short for an object (2 bytes)",
                length);
  }
  return length;
}

Result<> check_header_start(std::string_view start, const HeaderRules& rules) {
  std::size_t at = 0;
  while (rules.compat && at < start.size() && is_json_space(start[at])) ++at;
  if (at == start.size() || start[at] == '{') return {};
  if (start.substr(at).starts_with("\xEF\xBB\xBF")) {
    return fail(Code::corrupt, "the header starts with a byte order mark, not with \"{{\"");
  }
  return fail(Code::corrupt, "the header starts with {}, not with \"{{\"{}", hex_byte(start[at]),
              is_json_space(start[at]) ? " (compat passes over white space)" : "");
}

}  // namespace wc::checkpoint
