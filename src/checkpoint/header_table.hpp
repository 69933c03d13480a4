// The members of a header's object, taken one by one into a table: rules 9 to 15 and 26, each about
// what one member says. Where the tensors lie is layout.hpp's. Pure; one parse uses one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "base/result.hpp"
#include "checkpoint/header.hpp"
#include "checkpoint/json.hpp"

namespace wc::checkpoint {

class HeaderTable {
 public:
  HeaderTable(JsonReader& reader, const HeaderRules& rules, std::size_t json_bytes)
      : reader_(reader), rules_(rules) {
    header_.arena = std::make_unique<std::pmr::monotonic_buffer_resource>(json_bytes / 3 + 64);
    header_.tensors.reserve(json_bytes / 128);  // about as many as real headers have
  }

  Result<> add(std::string_view name, JsonValue value);
  /// No name twice; the table sorted.
  Result<> finish();
  Header take() && { return std::move(header_); }

 private:
  Result<> add_metadata(JsonValue value);
  Result<> add_tensor(std::string_view name, JsonValue value);
  Result<> add_field(HeaderTensor& tensor, std::size_t number, JsonValue value);
  Result<Dtype> dtype_of(JsonValue& value);
  Result<std::span<const std::int64_t>> shape_of(JsonValue value);
  Result<> offsets_of(HeaderTensor& tensor, JsonValue value);
  std::string_view keep(std::string_view text);

  JsonReader& reader_;
  const HeaderRules& rules_;
  Header header_;
  bool has_metadata_ = false;
};

}  // namespace wc::checkpoint
