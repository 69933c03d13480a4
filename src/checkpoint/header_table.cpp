#include "checkpoint/header_table.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "checkpoint/layout.hpp"
#include "checkpoint/text.hpp"

namespace wc::checkpoint {
namespace {

constexpr std::string_view kMetadata = "__metadata__";
// A further field's value stands on level 3.
constexpr unsigned kFurtherLevels = 1;

constexpr std::array<std::string_view, 3> kFields = {"dtype", "shape", "data_offsets"};
constexpr std::size_t kDtype = 0;
constexpr std::size_t kShape = 1;
constexpr std::size_t kDataOffsets = 2;

template <std::size_t N>
bool is_word(std::string_view text, const char (&word)[N]) {
  return text.size() == N - 1 && std::memcmp(text.data(), word, N - 1) == 0;
}

// kFields.size() for a further one.
std::size_t field_number(std::string_view field) {
  if (is_word(field, "dtype")) return kDtype;
  if (is_word(field, "shape")) return kShape;
  return is_word(field, "data_offsets") ? kDataOffsets : kFields.size();
}

Failure wrong_kind(std::string_view what, std::string_view token, std::string_view wanted) {
  return fail(Code::corrupt, "{} is {}, not {}", what, kind_of(token), wanted);
}

// Rule 15: plain digits. The token is looked at, since simdjson 3.0.1 takes -0 for an unsigned 0.
Result<std::uint64_t> integer_of(std::string_view what, std::string_view token,
                                 std::uint64_t highest) {
  const char first = token.empty() ? '\0' : token.front();
  if (first != '-' && (first < '0' || first > '9')) return wrong_kind(what, token, "an integer");
  std::uint64_t number = 0;
  const auto [rest, code] = std::from_chars(token.data(), token.data() + token.size(), number);
  const bool leading_zero = token.size() > 1 && token.front() == '0';
  const bool plain = !token.empty() && rest == token.data() + token.size() && !leading_zero;
  if (!plain || (code != std::errc() && code != std::errc::result_out_of_range)) {
    return fail(Code::corrupt, "{} is {}, not an integer in plain digits", what, in_quotes(token));
  }
  if (code == std::errc::result_out_of_range || number > highest) {
    return fail(Code::corrupt, "{} is {}, past {}", what, in_quotes(token), format_count(highest));
  }
  return number;
}

}  // namespace

std::string_view HeaderTable::keep(std::string_view text) {
  if (text.empty()) return {};
  auto* copy = static_cast<char*>(header_.arena->allocate(text.size(), 1));
  std::memcpy(copy, text.data(), text.size());
  return {copy, text.size()};
}

Result<> HeaderTable::add(std::string_view name, JsonValue value) {
  if (name == kMetadata) return add_metadata(value);
  TRY(check_tensor_name(name));
  if (header_.tensors.size() == kMaxTensors) {
    return fail(Code::corrupt, "the header has more than {} tensors", format_count(kMaxTensors));
  }
  auto added = add_tensor(name, value);
  if (added) return {};
  return Failure(std::move(added).error().within(format("tensor {}: ", in_quotes(name))));
}

Result<> HeaderTable::add_metadata(JsonValue value) {
  if (std::exchange(has_metadata_, true)) {
    return fail(Code::corrupt, "the name {} stands twice", in_quotes(kMetadata));
  }
  const std::string_view token = JsonReader::token_of(value);
  if (!token.starts_with('{')) {
    return wrong_kind(in_quotes(kMetadata), token, "an object of text to text");
  }
  std::size_t count = 0;
  if (value.count_fields().get(count) == simdjson::SUCCESS) header_.metadata.reserve(count);
  return reader_.each_member(value, [this](std::string_view key, JsonValue entry) -> Result<> {
    const std::string_view entry_token = JsonReader::token_of(entry);
    if (!entry_token.starts_with('"')) {
      return wrong_kind(format("\"{}\": the value of {}", kMetadata, in_quotes(key)), entry_token,
                        "text");
    }
    const std::string_view text = TRY(reader_.text_of(entry));
    header_.metadata.push_back({keep(key), keep(text)});
    return {};
  });
}

Result<> HeaderTable::add_tensor(std::string_view name, JsonValue value) {
  const std::string_view token = JsonReader::token_of(value);
  if (!token.starts_with('{')) {
    return fail(Code::corrupt, "it is {}, not an object", kind_of(token));
  }
  HeaderTensor tensor;
  tensor.name = keep(name);
  std::array<bool, kFields.size()> there = {};
  std::vector<HashedName> further;
  TRY(reader_.each_member(value, [&](std::string_view field, JsonValue inner) -> Result<> {
    const std::size_t number = field_number(field);
    if (number < kFields.size()) {
      if (!std::exchange(there[number], true)) return add_field(tensor, number, inner);
      return fail(Code::corrupt, "the field \"{}\" stands twice", field);
    }
    if (!rules_.compat) {
      return fail(Code::corrupt,
                  "it has a further field {} beside dtype, shape and data_offsets "
                  "(compat passes over it)",
                  in_quotes(field));
    }
    further.emplace_back(field, 0);
    return reader_.pass_over(inner, kFurtherLevels);
  }));
  if (const HashedName* twice = sort_and_find_twice(further)) {
    return fail(Code::corrupt, "the field {} stands twice", in_quotes(twice->name));
  }
  for (std::size_t number = 0; number < kFields.size(); ++number) {
    if (!there[number]) {
      return fail(Code::corrupt, "the field \"{}\" is missing", kFields[number]);
    }
  }
  header_.tensors.push_back(tensor);
  return {};
}

Result<> HeaderTable::add_field(HeaderTensor& tensor, std::size_t number, JsonValue value) {
  if (number == kDtype) {
    tensor.dtype = TRY(dtype_of(value));
  } else if (number == kShape) {
    tensor.shape = TRY(shape_of(value));
  } else {
    TRY(offsets_of(tensor, value));
  }
  return {};
}

Result<Dtype> HeaderTable::dtype_of(JsonValue& value) {
  const std::string_view token = JsonReader::token_of(value);
  if (!token.starts_with('"')) return wrong_kind("dtype", token, "text");
  const std::string_view text = TRY(reader_.text_of(value));
  if (const auto dtype = dtype_named(text)) return *dtype;
  return fail(Code::corrupt, "its dtype {} is unknown", in_quotes(text));
}

Result<std::span<const std::int64_t>> HeaderTable::shape_of(JsonValue value) {
  const std::string_view token = JsonReader::token_of(value);
  if (!token.starts_with('[')) return wrong_kind("shape", token, "an array of integers");
  std::array<std::int64_t, kMaxRank> dimensions = {};
  std::size_t rank = 0;
  const auto add_dimension = [&](JsonValue element) -> Result<> {
    if (rank == kMaxRank) {
      return fail(Code::corrupt, "shape has more than {} dimensions", kMaxRank);
    }
    const std::string_view digits = JsonReader::token_of(element);
    constexpr std::uint64_t kHighest = std::numeric_limits<std::int64_t>::max();
    const std::uint64_t dimension = TRY(integer_of("a dimension of shape", digits, kHighest));
    dimensions[rank++] = static_cast<std::int64_t>(dimension);
    return {};
  };
  TRY(reader_.each_element(value, add_dimension));
  if (rank == 0) return std::span<const std::int64_t>{};
  auto* kept = static_cast<std::int64_t*>(
      header_.arena->allocate(rank * sizeof(std::int64_t), alignof(std::int64_t)));
  std::copy_n(dimensions.begin(), rank, kept);
  return std::span<const std::int64_t>(kept, rank);
}

Result<> HeaderTable::offsets_of(HeaderTensor& tensor, JsonValue value) {
  const std::string_view token = JsonReader::token_of(value);
  if (!token.starts_with('[')) return wrong_kind("data_offsets", token, "an array of two integers");
  std::size_t count = 0;
  const auto add_offset = [&](JsonValue element) -> Result<> {
    if (count == 2) return fail(Code::corrupt, "data_offsets has more than two entries");
    const std::string_view digits = JsonReader::token_of(element);
    constexpr std::uint64_t kHighest = std::numeric_limits<std::uint64_t>::max();
    const bool first = count++ == 0;
    std::uint64_t& offset = first ? tensor.begin : tensor.end;
    offset = TRY(integer_of(first ? "data_offsets begin" : "data_offsets end", digits, kHighest));
    return {};
  };
  TRY(reader_.each_element(value, add_offset));
  if (count < 2) {
    return fail(Code::corrupt, "data_offsets has {} of two entries", count == 0 ? "none" : "one");
  }
  return {};
}

Result<> HeaderTable::finish() {
  std::vector<HashedName> keys;
  keys.reserve(header_.metadata.size());
  for (const Metadata& entry : header_.metadata) keys.emplace_back(entry.key, 0);
  if (const HashedName* twice = sort_and_find_twice(keys)) {
    return fail(Code::corrupt, "\"{}\": the name {} stands twice", kMetadata,
                in_quotes(twice->name));
  }
  sort_by_place(header_.tensors);
  header_.names.reserve(header_.tensors.size());
  for (const HeaderTensor& tensor : header_.tensors) {
    header_.names.emplace_back(tensor.name, static_cast<std::uint32_t>(header_.names.size()));
  }
  if (const HashedName* twice = sort_and_find_twice(header_.names)) {
    return fail(Code::corrupt, "tensor {}: the name stands twice", in_quotes(twice->name));
  }
  return {};
}

}  // namespace wc::checkpoint
