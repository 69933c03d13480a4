#include "manifest/order.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

namespace wc::manifest {
namespace {

constexpr std::size_t kKeyBytes = 8;

struct Item {
  std::uint64_t key;  // the 8 bytes of the name at the depth that is being sorted
  std::uint32_t index;
};

struct Range {
  std::size_t begin;
  std::size_t end;
  std::size_t depth;
};

// As a number whose order is that of the bytes; zeros past the name's end.
std::uint64_t key_at(std::string_view name, std::size_t depth) {
  std::uint64_t word = 0;
  if (depth < name.size()) {
    std::memcpy(&word, name.data() + depth, std::min(kKeyBytes, name.size() - depth));
  }
  return std::byteswap(word);
}

}  // namespace

// Sorts by 8 bytes at a time: what is equal in them is sorted by the next 8. A comparison is then
// one of two numbers that lie side by side, not of two texts somewhere.
std::vector<std::uint32_t> sorted_by_name(std::span<const std::string_view> names) {
  std::vector<Item> items(names.size());
  for (std::uint32_t at = 0; at < items.size(); ++at) items[at].index = at;
  std::vector<Range> todo = {{0, items.size(), 0}};
  while (!todo.empty()) {
    const Range range = todo.back();
    todo.pop_back();
    for (std::size_t at = range.begin; at < range.end; ++at) {
      items[at].key = key_at(names[items[at].index], range.depth);
    }
    std::sort(items.begin() + static_cast<std::ptrdiff_t>(range.begin),
              items.begin() + static_cast<std::ptrdiff_t>(range.end),
              [](const Item& left, const Item& right) {
                return left.key != right.key ? left.key < right.key : left.index < right.index;
              });
    for (std::size_t first = range.begin; first < range.end;) {
      std::size_t last = first + 1;
      while (last < range.end && items[last].key == items[first].key) ++last;
      const bool ended = (items[first].key & 0xff) == 0;  // in these bytes: the names are equal
      if (last - first > 1 && !ended) todo.push_back({first, last, range.depth + kKeyBytes});
      first = last;
    }
  }
  std::vector<std::uint32_t> order(items.size());
  for (std::size_t at = 0; at < order.size(); ++at) order[at] = items[at].index;
  return order;
}

}  // namespace wc::manifest
