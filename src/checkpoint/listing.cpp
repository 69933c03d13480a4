#include "checkpoint/listing.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/units.hpp"
#include "checkpoint/names.hpp"
#include "checkpoint/text.hpp"

namespace wc::checkpoint {
namespace {

constexpr std::size_t kOthersKept = 4;
constexpr std::size_t kDigits = 5;

// NAME-00002-of-00004.safetensors
struct Numbered {
  std::string_view stem;
  std::string_view total_digits;
  unsigned number = 0;
  unsigned total = 0;
};

std::optional<unsigned> take_digits(std::string_view& rest) {
  if (rest.size() < kDigits) return std::nullopt;
  const std::string_view digits = rest.substr(rest.size() - kDigits);
  unsigned number = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + kDigits, number);
  if (code != std::errc() || end != digits.data() + kDigits) return std::nullopt;
  rest.remove_suffix(kDigits);
  return number;
}

bool take_suffix(std::string_view& rest, std::string_view suffix) {
  if (!rest.ends_with(suffix)) return false;
  rest.remove_suffix(suffix.size());
  return true;
}

std::optional<Numbered> numbered(std::string_view name) {
  Numbered parts;
  std::string_view rest = name;
  if (!take_suffix(rest, ".safetensors")) return std::nullopt;
  const std::size_t end = rest.size();
  const auto total = take_digits(rest);
  if (!total || !take_suffix(rest, "-of-")) return std::nullopt;
  parts.total_digits = name.substr(end - kDigits, kDigits);
  const auto number = take_digits(rest);
  if (!number || !take_suffix(rest, "-")) return std::nullopt;
  if (*number < 1 || *number > *total) return std::nullopt;
  parts.stem = rest;
  parts.number = *number;
  parts.total = *total;
  return parts;
}

std::string file_of(const Numbered& set, unsigned number) {
  return format("{}-{:05}-of-{}.safetensors", set.stem, number, set.total_digits);
}

Failure ambiguous(const Listing& listing) {
  return fail(Code::invalid_argument,
              "ambiguous: there is no {}, and {} files could be the checkpoint: {} (name one of "
              "them)",
              in_quotes(kIndexName), format_count(listing.shards.size()), listed(listing.shards));
}

Failure incomplete(const Numbered& set, const Listing& listing) {
  std::vector<std::string> missing;
  for (unsigned number = 1; number <= set.total && missing.size() < listing.shards.size() + 9;
       ++number) {
    std::string name = file_of(set, number);
    if (!std::binary_search(listing.shards.begin(), listing.shards.end(), name)) {
      missing.push_back(std::move(name));
    }
  }
  return fail(Code::invalid_argument,
              "ambiguous: there is no {}, and of the set of {} files {} are there: {}; missing: {}",
              in_quotes(kIndexName), set.total, format_count(listing.shards.size()),
              listed(listing.shards), listed(missing));
}

}  // namespace

Result<Listing> list_folder(const std::string& folder) {
  namespace fs = std::filesystem;
  Listing listing;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::string name = at->path().filename().string();
    if (name == kIndexName) {
      listing.has_index = true;
    } else if (has_shard_suffix(name) && !name.starts_with('.')) {
      listing.shards.push_back(std::move(name));
    } else if (listing.others.size() < kOthersKept) {
      listing.others.push_back(std::move(name));
    }
  }
  if (error) {
    const Code code = error.value() == ENOENT   ? Code::not_found
                      : error.value() == EACCES ? Code::denied
                                                : Code::io;
    return fail_os(code, error.value(), "list {}", in_quotes(folder));
  }
  std::sort(listing.shards.begin(), listing.shards.end());
  std::sort(listing.others.begin(), listing.others.end());
  return listing;
}

Result<std::vector<std::string>> choose_shards(const Listing& listing) {
  const auto& shards = listing.shards;
  if (shards.empty()) {
    const std::string others =
        listing.others.empty() ? "it is empty" : "it holds " + listed(listing.others);
    return fail(Code::not_found, "there is neither {} nor any *.safetensors; {}",
                in_quotes(kIndexName), others);
  }
  const auto set = numbered(shards.front());
  if (!set)
    return shards.size() == 1 ? Result<std::vector<std::string>>(shards) : ambiguous(listing);
  for (const std::string& shard : shards) {
    const auto one = numbered(shard);
    const bool same = one && one->stem == set->stem && one->total == set->total;
    if (!same) return ambiguous(listing);
  }
  // All are members of one set, and different: it is complete when their count is right.
  if (shards.size() != set->total) return incomplete(*set, listing);
  return shards;
}

}  // namespace wc::checkpoint
