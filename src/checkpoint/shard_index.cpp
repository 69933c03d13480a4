#include "checkpoint/shard_index.hpp"

#include <map>
#include <string_view>

#include "base/units.hpp"
#include "checkpoint/json.hpp"
#include "checkpoint/text.hpp"

namespace wc::checkpoint {
namespace {

// What else the index says (`metadata`, with the advice `total_size`) is passed over.
constexpr unsigned kFurtherLevels = 64;
constexpr std::string_view kMap = "weight_map";

// Collects the map's pairs. Shards get numbers as they come.
class Collector {
 public:
  explicit Collector(JsonReader& reader) : reader_(reader) {}

  Result<> add(std::string_view name, JsonValue value) {
    if (!JsonReader::token_of(value).starts_with('"')) {
      return fail(Code::corrupt, "\"{}\": the shard of tensor {} is {}, not text", kMap,
                  in_quotes(name), kind_of(JsonReader::token_of(value)));
    }
    const std::string_view shard = TRY(reader_.text_of(value));
    const std::uint32_t number = TRY(number_of(name, shard));
    names_.emplace_back(name, number);
    return {};
  }

  std::vector<HashedName>& names() { return names_; }
  /// Sorted by name.
  const std::map<std::string_view, std::uint32_t>& numbers() { return numbers_; }

 private:
  Result<std::uint32_t> number_of(std::string_view name, std::string_view shard) {
    // Neighbours mostly share a shard.
    if (last_ != numbers_.end() && last_->first == shard) return last_->second;
    const auto next = static_cast<std::uint32_t>(numbers_.size());
    const auto [at, is_new] = numbers_.try_emplace(shard, next);
    if (is_new) {
      auto checked = check_shard_name(shard);
      if (!checked) {
        return Failure(std::move(checked).error().within(format("tensor {}: ", in_quotes(name))));
      }
    }
    last_ = at;
    return at->second;
  }

  JsonReader& reader_;
  std::vector<HashedName> names_;
  std::map<std::string_view, std::uint32_t> numbers_;
  std::map<std::string_view, std::uint32_t>::const_iterator last_ = numbers_.end();
};

Result<std::string_view> object_of(std::string_view text) {
  while (!text.empty() && is_json_space(text.front())) text.remove_prefix(1);
  if (text.starts_with('{')) return text;
  if (text.empty()) return fail(Code::corrupt, "the index is empty");
  return fail(Code::corrupt, "the index starts with {}, not with \"{{\"", hex_byte(text.front()));
}

}  // namespace

ShardIndex::ShardIndex() = default;
ShardIndex::ShardIndex(ShardIndex&&) noexcept = default;
ShardIndex& ShardIndex::operator=(ShardIndex&&) noexcept = default;
ShardIndex::~ShardIndex() = default;

Result<ShardIndex> ShardIndex::parse(std::unique_ptr<JsonBuffer> json) {
  ShardIndex index;
  index.json_ = std::move(json);
  index.reader_ = std::make_unique<JsonReader>("index");
  TRY(index.read_members());
  return index;
}

Result<> ShardIndex::read_members() {
  const std::string_view object = TRY(object_of(json_->text()));
  Collector collector(*reader_);
  bool has_map = false;
  std::vector<HashedName> members;
  TRY(reader_->read(object, [&](std::string_view member, JsonValue value) -> Result<> {
    members.emplace_back(member, 0);
    if (member != kMap) return reader_->pass_over(value, kFurtherLevels);
    if (std::exchange(has_map, true)) return fail(Code::corrupt, "\"{}\" stands twice", kMap);
    if (!JsonReader::token_of(value).starts_with('{')) {
      return fail(Code::corrupt, "\"{}\" is {}, not an object of text to text", kMap,
                  kind_of(JsonReader::token_of(value)));
    }
    return reader_->each_member(
        value, [&](std::string_view name, JsonValue shard) { return collector.add(name, shard); });
  }));
  if (const HashedName* twice = sort_and_find_twice(members)) {
    return fail(Code::corrupt, "the name {} stands twice", in_quotes(twice->name));
  }
  if (!has_map) return fail(Code::corrupt, "\"{}\" is missing", kMap);
  if (const HashedName* twice = sort_and_find_twice(collector.names())) {
    return fail(Code::corrupt, "\"{}\": tensor {} stands twice", kMap, in_quotes(twice->name));
  }
  std::vector<std::uint32_t> rank(collector.numbers().size());
  for (const auto& [shard, number] : collector.numbers()) {
    rank[number] = static_cast<std::uint32_t>(shards_.size());
    shards_.emplace_back(shard);
  }
  group(collector.names(), rank);
  return {};
}

// Keeps the order within a group: the names are sorted already.
void ShardIndex::group(const std::vector<HashedName>& names,
                       const std::vector<std::uint32_t>& rank) {
  starts_.assign(shards_.size() + 1, 0);
  for (const HashedName& name : names) ++starts_[rank[name.at] + 1];
  for (std::size_t shard = 1; shard < starts_.size(); ++shard) starts_[shard] += starts_[shard - 1];
  std::vector<std::size_t> next = starts_;
  tensors_.assign(names.size(), HashedName({}, 0));
  for (const HashedName& name : names) tensors_[next[rank[name.at]]++] = name;
}

std::span<const HashedName> ShardIndex::tensors_of(std::size_t shard) const {
  return std::span(tensors_).subspan(starts_[shard], starts_[shard + 1] - starts_[shard]);
}

}  // namespace wc::checkpoint
