#include "checkpoint/names.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "base/units.hpp"
#include "checkpoint/text.hpp"

namespace wc::checkpoint {
namespace {

constexpr std::size_t kMaxFileNameBytes = 255;  // NAME_MAX of every file system in use
constexpr std::size_t kListed = 8;

bool has_drive_letter(std::string_view name) {
  if (name.size() < 2 || name[1] != ':') return false;
  const char letter = static_cast<char>(name[0] | 0x20);
  return letter >= 'a' && letter <= 'z';
}

// Hashes spread evenly unless somebody chose the names: a scatter by their first bits leaves
// one or two names in each bucket. Where somebody did, std::sort bounds the cost.
void sort_by_hash(std::vector<HashedName>& names) {
  if (names.size() < 2) return;
  const auto bits = static_cast<unsigned>(std::bit_width(names.size() - 1));
  const auto bucket_of = [shift = 64 - bits](const HashedName& name) { return name.hash >> shift; };
  std::vector<std::uint32_t> ends((std::size_t{1} << bits) + 1);
  for (const HashedName& name : names) ++ends[bucket_of(name) + 1];
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  std::vector<HashedName> sorted(names.size(), names.front());
  for (const HashedName& name : names) sorted[ends[bucket_of(name)]++] = name;
  std::uint32_t start = 0;
  for (const std::uint32_t end : std::span(ends).first(ends.size() - 1)) {
    if (end - start > 1) std::sort(sorted.begin() + start, sorted.begin() + end);
    start = end;
  }
  names = std::move(sorted);
}

}  // namespace

Result<> check_tensor_name(std::string_view name) {
  if (name.empty()) return fail(Code::corrupt, "a tensor's name is empty");
  if (name.size() > kMaxNameBytes) {
    return fail(Code::corrupt, "tensor {}: its name is {} bytes long ({} at most)", in_quotes(name),
                format_count(name.size()), format_count(kMaxNameBytes));
  }
  if (const auto at = first_control(name)) {
    return fail(Code::corrupt, "tensor {}: its name has a control character at byte {}",
                in_quotes(name), format_count(*at));
  }
  return {};
}

bool has_shard_suffix(std::string_view name) { return name.ends_with(kShardSuffix); }

Result<> check_shard_name(std::string_view name) {
  if (name.find_first_of("/\\") != std::string_view::npos) {
    return fail(Code::corrupt,
                "the shard's name {} has a path separator: only plain file names "
                "are allowed",
                in_quotes(name));
  }
  if (first_control(name)) {
    return fail(Code::corrupt, "the shard's name {} has a control character", in_quotes(name));
  }
  if (has_drive_letter(name)) {
    return fail(Code::corrupt, "the shard's name {} has a drive letter", in_quotes(name));
  }
  if (!has_shard_suffix(name)) {
    return fail(Code::corrupt, "the shard's name {} does not end in {}", in_quotes(name),
                in_quotes(kShardSuffix));
  }
  if (name.size() > kMaxFileNameBytes) {
    return fail(Code::corrupt, "the shard's name {} is {} bytes long ({} at most)", in_quotes(name),
                format_count(name.size()), kMaxFileNameBytes);
  }
  return {};
}

const HashedName* sort_and_find_twice(std::vector<HashedName>& names) {
  sort_by_hash(names);
  const auto twice = std::adjacent_find(names.begin(), names.end());
  return twice == names.end() ? nullptr : &*twice;
}

const HashedName* mark_wanted(std::span<const HashedName> names, std::span<const HashedName> wanted,
                              std::vector<bool>& found) {
  auto name = names.begin();
  for (const HashedName& one : wanted) {
    while (name != names.end() && name->hash < one.hash) ++name;
    // Nearly always one comparison of names: the one that says that they are equal.
    int order = -1;
    for (; name != names.end() && name->hash == one.hash; ++name) {
      order = name->name.compare(one.name);
      if (order >= 0) break;
    }
    if (order != 0) return &one;
    found[name->at] = true;
  }
  return nullptr;
}

std::string listed(std::span<const std::string> names) {
  std::string text;
  const std::size_t shown = std::min(names.size(), kListed);
  for (std::size_t at = 0; at < shown; ++at) {
    if (at > 0) text += ", ";
    text += in_quotes(names[at]);
  }
  if (names.size() > shown) text += format(" and {} more", format_count(names.size() - shown));
  return text;
}

}  // namespace wc::checkpoint
