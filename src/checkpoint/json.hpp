// RFC 8259 to the letter over simdjson's On-Demand interface, which by itself checks only what its
// caller looks at: here every member is visited, every scalar's token checked, every text with an
// escape decoded, and the end looked at. One object a text; no name twice in one object. Used by
// the readers of headers and of the index; nobody else includes it. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <simdjson.h>

#include "base/result.hpp"
#include "checkpoint/names.hpp"

namespace wc::checkpoint {

using JsonValue = simdjson::ondemand::value;

/// Bytes behind a text that the parser may read, as zeros.
inline constexpr std::size_t kJsonPadding = 64;
static_assert(kJsonPadding >= simdjson::SIMDJSON_PADDING);

/// Room for a JSON text and its padding; kept from one text to the next.
class JsonBuffer {
 public:
  /// The content is undefined, the padding zero.
  std::span<char> resize(std::size_t bytes);
  [[nodiscard]] std::string_view text() const { return {data_.get(), size_}; }

 private:
  std::unique_ptr<char[]> data_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

/// "an object", "text", "a number", ... by a token's first character.
[[nodiscard]] std::string_view kind_of(std::string_view token);

class JsonReader {
 public:
  /// `what` stands at the start of messages about syntax: "header", "index".
  explicit JsonReader(std::string_view what) : what_(what) {}

  /// Reads `text` as one object, calling `on_member(name, value)` -> Result<> for each. The text
  /// must have kJsonPadding readable bytes behind it, of which the first is no bracket. Texts
  /// handed out live until the next read, or the end of the buffer. Errors: corrupt, exhausted, and
  /// what on_member returns.
  template <typename OnMember>
  Result<> read(std::string_view text, OnMember&& on_member);

  /// The members of an object within. A value that on_member leaves unread is an error of the
  /// caller's: it would go unchecked.
  template <typename OnMember>
  Result<> each_member(JsonValue value, OnMember&& on_member);
  /// The elements of an array within.
  template <typename OnElement>
  Result<> each_element(JsonValue value, OnElement&& on_element);
  /// Any value, checked to its end, nested `levels` deep at most.
  Result<> pass_over(JsonValue value, unsigned levels);

  /// The value's first token, without white space behind: what a message may show.
  [[nodiscard]] static std::string_view token_of(JsonValue& value);
  /// Takes the text of a value whose token begins with a quote.
  [[nodiscard]] Result<std::string_view> text_of(JsonValue& value);

 private:
  using Member = simdjson::simdjson_result<simdjson::ondemand::field>;

  template <typename OnMember>
  Result<> members_of(simdjson::ondemand::object& object, OnMember&& on_member);
  [[nodiscard]] Result<std::string_view> name_of(simdjson::ondemand::field& member);
  [[nodiscard]] Result<> at_end();
  /// The first pass, over the whole text, failed: there is no document yet.
  [[nodiscard]] Failure scan_failure(simdjson::error_code error) const;
  [[nodiscard]] Failure failure(simdjson::error_code error);
  [[nodiscard]] Failure failure_at(const char* place, std::string_view fault) const;

  std::string what_;
  std::string_view text_;
  simdjson::ondemand::parser parser_;
  simdjson::ondemand::document document_;
};

/// Whether a token is a number of RFC 8259.
[[nodiscard]] bool is_json_number(std::string_view token);

template <typename OnMember>
Result<> JsonReader::read(std::string_view text, OnMember&& on_member) {
  text_ = text;
  const simdjson::padded_string_view padded(text.data(), text.size(), text.size() + kJsonPadding);
  if (const auto error = parser_.iterate(padded).get(document_)) return scan_failure(error);
  simdjson::ondemand::object object;
  if (const auto error = document_.get_object().get(object)) return failure(error);
  TRY(members_of(object, on_member));
  return at_end();
}

template <typename OnMember>
Result<> JsonReader::each_member(JsonValue value, OnMember&& on_member) {
  simdjson::ondemand::object object;
  if (const auto error = value.get_object().get(object)) return failure(error);
  return members_of(object, on_member);
}

template <typename OnMember>
Result<> JsonReader::members_of(simdjson::ondemand::object& object, OnMember&& on_member) {
  for (Member result : object) {
    simdjson::ondemand::field member;
    if (const auto error = std::move(result).get(member)) return failure(error);
    const std::string_view name = TRY(name_of(member));
    TRY(on_member(name, member.value()));
  }
  return {};
}

template <typename OnElement>
Result<> JsonReader::each_element(JsonValue value, OnElement&& on_element) {
  simdjson::ondemand::array array;
  if (const auto error = value.get_array().get(array)) return failure(error);
  for (auto result : array) {
    JsonValue element;
    if (const auto error = std::move(result).get(element)) return failure(error);
    TRY(on_element(element));
  }
  return {};
}

}  // namespace wc::checkpoint
