// The rules of a safetensors file, read straightforwardly and checked one after the other, over
// another JSON parser and without a thought for speed: what the checkpoint's reader is compared
// with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace wc::fuzz {

struct NaiveTensor {
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  auto operator<=>(const NaiveTensor&) const = default;
};

struct NaiveTable {
  std::vector<NaiveTensor> tensors;  // sorted
  std::vector<std::pair<std::string, std::string>> metadata;
  std::uint64_t trailing_bytes = 0;
  auto operator<=>(const NaiveTable&) const = default;
};

struct NaiveRules {
  bool compat = false;
  bool allow_trailing = false;
};

/// Nothing for a file that is to be refused.
std::optional<NaiveTable> read_naively(std::string_view file, std::uint64_t file_bytes,
                                       const NaiveRules& rules);

/// The highest end in any data_offsets of a header: the data that would be long enough for it.
std::uint64_t data_wanted(std::string_view header);

}  // namespace wc::fuzz
