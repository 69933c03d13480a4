// Names in a checkpoint: which are allowed, and finding two that are equal without comparing each
// with each. Sorting bounds the cost whatever names a file chooses: equal hashes, made by intent or
// not, fall back to the order of the names. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace wc::checkpoint {

inline constexpr std::size_t kMaxNameBytes = 1024;

/// Rule 12: 1 to 1,024 bytes, no control characters. Errors: corrupt.
[[nodiscard]] Result<> check_tensor_name(std::string_view name);

/// Directory rule 2: a plain file name that ends in `.safetensors`: no separator, control
/// character, drive letter. Errors: corrupt.
[[nodiscard]] Result<> check_shard_name(std::string_view name);

inline constexpr std::string_view kShardSuffix = ".safetensors";

[[nodiscard]] bool has_shard_suffix(std::string_view name);

struct HashedName {
  std::uint64_t hash = 0;
  std::string_view name;
  std::uint32_t at = 0;  // index into whatever the names were taken from

  HashedName(std::string_view text, std::uint32_t index)
      : hash(std::hash<std::string_view>{}(text)), name(text), at(index) {}
  friend bool operator<(const HashedName& left, const HashedName& right) {
    return left.hash != right.hash ? left.hash < right.hash : left.name < right.name;
  }
  friend bool operator==(const HashedName& left, const HashedName& right) {
    return left.hash == right.hash && left.name == right.name;
  }
};

/// Sorts (by hash, then by name) and gives the first of two neighbours that are equal, or nullptr.
[[nodiscard]] const HashedName* sort_and_find_twice(std::vector<HashedName>& names);

/// `names` and `wanted` sorted: marks in `found` (one flag for each `at` of `names`) what is
/// wanted; gives the first wanted one that is not among the names, or nullptr.
[[nodiscard]] const HashedName* mark_wanted(std::span<const HashedName> names,
                                            std::span<const HashedName> wanted,
                                            std::vector<bool>& found);

/// Names for a message: "a", "b" and 3 more.
[[nodiscard]] std::string listed(std::span<const std::string> names);

}  // namespace wc::checkpoint
