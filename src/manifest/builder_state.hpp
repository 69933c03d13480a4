// What a builder has gathered. Inside this folder only.
#pragma once

#include <algorithm>
#include <bit>
#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "manifest/builder.hpp"
#include "manifest/records.hpp"

namespace wc::manifest {

/// In the order in which attributes stand in the manifest.
struct AttributeKey {
  std::string path;
  bool of_tensor = false;
  std::string name;
  auto operator<=>(const AttributeKey&) const = default;
};

/// Shapes repeat (the experts of a layer, the layers of a model): each is stored once.
class IntegerPool {
 public:
  /// Where these values stand in the pool.
  [[nodiscard]] std::uint32_t intern(std::span<const std::int64_t> values);
  [[nodiscard]] const std::vector<std::int64_t>& values() const { return values_; }

 private:
  std::vector<std::int64_t> values_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> places_;  // by the values' hash
};

struct Builder::State {
  std::vector<SegmentOptions> segments;
  std::vector<std::uint64_t> segment_used_bytes;
  std::vector<FileOptions> files;
  std::vector<std::uint64_t> file_bytes;
  std::unordered_set<std::string> file_names;
  std::vector<fb::TensorRecord> records;
  std::string text;
  IntegerPool integers;
  std::map<AttributeKey, Value> attributes;
  std::string fingerprint;
  std::string fingerprint_json;
  ProvenanceOptions provenance;
  DtypeBits dtypes;

  [[nodiscard]] Pools pools() const {
    return {text, integers.values(), segment_used_bytes, file_bytes};
  }
  [[nodiscard]] std::string_view name_of(std::uint32_t tensor) const {
    const auto& record = records[tensor];
    return std::string_view(text).substr(record.name_at(), record.name_bytes());
  }
  /// Everything that only the whole can be asked for. `order` is that of the tensors' names.
  [[nodiscard]] Result<> check_whole(std::span<const std::uint32_t> order) const;
};

[[nodiscard]] ValueView view_of(const Value& value);
[[nodiscard]] SegmentView view_of(const SegmentOptions& segment);

}  // namespace wc::manifest
