#include "checkpoint/json.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/units.hpp"
#include "checkpoint/text.hpp"

namespace wc::checkpoint {
namespace {

std::string_view without_space_behind(std::string_view token) {
  while (!token.empty() && is_json_space(token.back())) token.remove_suffix(1);
  return token;
}

std::string_view fault_of(simdjson::error_code error) {
  switch (error) {
    case simdjson::UNESCAPED_CHARS:
      return "a control character stands in a text unescaped";
    case simdjson::UNCLOSED_STRING:
      return "a text is not closed";
    case simdjson::STRING_ERROR:
      return "a text has a bad escape";
    case simdjson::INCOMPLETE_ARRAY_OR_OBJECT:
      return "an object or an array is not closed";
    default:
      return "a comma, colon, bracket or quoted name is missing, or is one too many";
  }
}

// simdjson 3.1 gave this an argument: whether a lone surrogate is replaced instead of refused.
template <typename Member>
auto unescaped_name(Member& member) {
  if constexpr (requires { member.unescaped_key(); }) {
    return member.unescaped_key();
  } else {
    return member.unescaped_key(false);
  }
}

std::size_t digits_at(std::string_view token, std::size_t at) {
  const auto rest = token.substr(std::min(at, token.size()));
  const auto end =
      std::find_if(rest.begin(), rest.end(), [](char c) { return c < '0' || c > '9'; });
  return static_cast<std::size_t>(end - rest.begin());
}

}  // namespace

std::span<char> JsonBuffer::resize(std::size_t bytes) {
  if (bytes + kJsonPadding > capacity_) {
    data_.reset();
    data_ = std::make_unique_for_overwrite<char[]>(bytes + kJsonPadding);
    capacity_ = bytes + kJsonPadding;
  }
  size_ = bytes;
  std::memset(data_.get() + bytes, 0, kJsonPadding);
  return {data_.get(), bytes};
}

std::string_view kind_of(std::string_view token) {
  switch (token.empty() ? '\0' : token.front()) {
    case '{':
      return "an object";
    case '[':
      return "an array";
    case '"':
      return "text";
    case 't':
    case 'f':
      return "a boolean";
    case 'n':
      return "null";
    case '-':
      return "a number";
    default:
      return digits_at(token, 0) > 0 ? "a number" : "no JSON value";
  }
}

bool is_json_number(std::string_view token) {
  std::size_t at = token.starts_with('-') ? 1 : 0;
  const std::size_t whole = digits_at(token, at);
  if (whole == 0 || (whole > 1 && token[at] == '0')) return false;
  at += whole;
  if (at < token.size() && token[at] == '.') {
    const std::size_t fraction = digits_at(token, at + 1);
    if (fraction == 0) return false;
    at += 1 + fraction;
  }
  if (at < token.size() && (token[at] == 'e' || token[at] == 'E')) {
    ++at;
    if (at < token.size() && (token[at] == '+' || token[at] == '-')) ++at;
    const std::size_t exponent = digits_at(token, at);
    if (exponent == 0) return false;
    at += exponent;
  }
  return at == token.size();
}

std::string_view JsonReader::token_of(JsonValue& value) {
  return without_space_behind(value.raw_json_token());
}

Result<std::string_view> JsonReader::text_of(JsonValue& value) {
  const std::string_view token = token_of(value);
  if (token.size() < 2 || token.front() != '"' || token.back() != '"') {
    return failure_at(token.data(), "a text is not closed");
  }
  // Most texts have no escape: what stands between the quotes is the text, and simdjson has already
  // checked it for UTF-8 and control characters.
  const std::string_view plain = token.substr(1, token.size() - 2);
  std::string_view text;
  if (plain.find('\\') != std::string_view::npos) {
    if (const auto error = value.get_string().get(text)) return failure(error);
    return text;
  }
  // It must be taken, not only looked at: the parser skips over what was not taken, and then takes
  // a text with a colon behind it for a name, and whatever follows for its value.
  simdjson::ondemand::raw_json_string taken;
  if (const auto error = value.get_raw_json_string().get(taken)) return failure(error);
  return plain;
}

Result<std::string_view> JsonReader::name_of(simdjson::ondemand::field& member) {
  const char* start = member.key().raw();
  const std::string_view rest(start, static_cast<std::size_t>(text_.end() - start));
  const std::size_t end = rest.find('"');
  if (end == std::string_view::npos) return failure_at(start, "a text is not closed");
  const std::string_view plain = rest.substr(0, end);
  if (plain.find('\\') == std::string_view::npos) return plain;
  std::string_view name;
  if (const auto error = unescaped_name(member).get(name)) return failure(error);
  return name;
}

Result<> JsonReader::pass_over(JsonValue value, unsigned levels) {
  const std::string_view token = token_of(value);
  const std::string_view kind = kind_of(token);
  if (kind == "an object" || kind == "an array") {
    if (levels == 0) return failure_at(token.data(), "it is nested too deep");
    if (kind == "an array") {
      return each_element(value, [&](JsonValue inner) { return pass_over(inner, levels - 1); });
    }
    std::vector<HashedName> names;
    TRY(each_member(value, [&](std::string_view name, JsonValue inner) {
      names.emplace_back(name, static_cast<std::uint32_t>(names.size()));
      return pass_over(inner, levels - 1);
    }));
    if (const HashedName* twice = sort_and_find_twice(names)) {
      return fail(Code::corrupt, "the name {} stands twice in one object", in_quotes(twice->name));
    }
    return {};
  }
  if (kind == "text") {
    TRY(text_of(value));
    return {};
  }
  if (token == "true" || token == "false" || token == "null") return {};
  if (is_json_number(token)) {
    // The grammar has no bound; parsers have, and not all the same.
    double number = 0;
    const auto parsed = std::from_chars(token.data(), token.data() + token.size(), number);
    if (parsed.ec == std::errc()) return {};
    return failure_at(token.data(), "a number is out of the range of 64-bit floating point");
  }
  return failure_at(token.data(), "no value of JSON begins like this");
}

Result<> JsonReader::at_end() {
  const char* place = nullptr;
  if (document_.current_location().get(place) == simdjson::OUT_OF_BOUNDS) return {};
  return failure_at(place, "something follows after the object's end");
}

Failure JsonReader::scan_failure(simdjson::error_code error) const {
  if (error == simdjson::MEMALLOC) {
    return fail(Code::exhausted, "no memory to read the {} of {}", what_,
                format_bytes(text_.size()));
  }
  if (error == simdjson::UTF8_ERROR) {
    return fail(Code::corrupt, "the {} is not UTF-8 at byte {}", what_,
                format_count(first_invalid_utf8(text_).value_or(text_.size())));
  }
  const std::size_t place =
      error == simdjson::UNESCAPED_CHARS ? first_bare_control(text_).value_or(0) : text_.size();
  return failure_at(text_.data() + place, fault_of(error));
}

Failure JsonReader::failure(simdjson::error_code error) {
  const char* place = nullptr;
  if (document_.current_location().get(place) != simdjson::SUCCESS) place = nullptr;
  return failure_at(place, fault_of(error));
}

Failure JsonReader::failure_at(const char* place, std::string_view fault) const {
  const bool known =
      place != nullptr && place >= text_.data() && place <= text_.data() + text_.size();
  if (!known) return fail(Code::corrupt, "the {} is not valid JSON: {}", what_, fault);
  return fail(Code::corrupt, "the {} is not valid JSON at byte {}: {}", what_,
              format_count(static_cast<std::size_t>(place - text_.data())), fault);
}

}  // namespace wc::checkpoint
