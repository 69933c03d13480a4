// `model.safetensors.index.json`: the list of what is loaded, and of where each tensor stands. From
// bytes to a table; pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "checkpoint/names.hpp"

namespace wc::checkpoint {

class JsonBuffer;
class JsonReader;

inline constexpr std::uint64_t kMaxIndexBytes = std::uint64_t{256} << 20;

class ShardIndex {
 public:
  /// Directory rules 1 and 2. Errors: corrupt, exhausted.
  static Result<ShardIndex> parse(std::unique_ptr<JsonBuffer> json);

  /// Sorted by name.
  [[nodiscard]] const std::vector<std::string>& shards() const { return shards_; }
  /// The tensors that are to be taken from one of them, sorted as HashedName; alive as long as
  /// this.
  [[nodiscard]] std::span<const HashedName> tensors_of(std::size_t shard) const;

  ShardIndex(ShardIndex&&) noexcept;
  ShardIndex& operator=(ShardIndex&&) noexcept;
  ~ShardIndex();

 private:
  ShardIndex();
  Result<> read_members();
  void group(const std::vector<HashedName>& names, const std::vector<std::uint32_t>& rank);

  std::vector<std::string> shards_;
  std::vector<HashedName> tensors_;   // grouped by shard
  std::vector<std::size_t> starts_;   // of each shard's group, and the end
  std::unique_ptr<JsonBuffer> json_;  // these two own the names
  std::unique_ptr<JsonReader> reader_;
};

}  // namespace wc::checkpoint
