#include "manifest/selector.hpp"

#include <algorithm>
#include <charconv>

#include "base/units.hpp"
#include "manifest/limits.hpp"
#include "manifest/text.hpp"

namespace wc::manifest {
namespace {

constexpr std::size_t kMaxEntryNameBytes = 256;
constexpr std::size_t kMaxPathBytes = 4096;
constexpr std::size_t kMinPrefixDigits = 4;
constexpr std::size_t kMaxNearest = 3;

Failure refuse_text(std::string_view text, const std::string& what) {
  return fail(Code::invalid_argument, "\"{}\": {}", shown(text), what);
}

bool is_path(std::string_view text) {
  return text == "." || text == ".." || text == "~" || text.starts_with('/') ||
         text.starts_with("./") || text.starts_with("../") || text.starts_with("~/");
}

Result<Selector> parse_path(std::string_view text) {
  if (text.size() > kMaxPathBytes) {
    return refuse_text(text, format("a path of {} bytes, at most {}", format_count(text.size()),
                                    format_count(kMaxPathBytes)));
  }
  if (text.find('\0') != std::string_view::npos)
    return refuse_text(text, "a path with a NUL in it");
  return Selector{Selector::Kind::path, std::string(text), {}};
}

Result<Selector> parse_prefix(std::string_view text) {
  std::string digits(text.substr(1));
  for (char& digit : digits) {
    if (digit >= 'A' && digit <= 'F') digit = static_cast<char>(digit - 'A' + 'a');
  }
  if (digits.size() < kMinPrefixDigits || digits.size() > kFingerprintDigits ||
      !is_lower_hex(digits)) {
    return refuse_text(text,
                       format("after the @ of a fingerprint stand {} to {} hexadecimal digits",
                              kMinPrefixDigits, kFingerprintDigits));
  }
  return Selector{Selector::Kind::fingerprint, std::move(digits), {}};
}

Result<std::uint64_t> parse_generation(std::string_view text, std::string_view digits) {
  std::uint64_t number = 0;
  const char* end = digits.data() + digits.size();
  const auto [rest, code] = std::from_chars(digits.data(), end, number);
  if (code == std::errc() && rest == end && number > 0 && digits.front() != '0') return number;
  return refuse_text(text, "after the name's @ stands a generation, a number from 1 on");
}

char lower(char byte) {
  return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte - 'A' + 'a') : byte;
}

// Insertions, deletions, exchanges and swaps of neighbours, letters' case aside.
std::size_t edit_distance(std::string_view left, std::string_view right) {
  std::vector<std::size_t> before(right.size() + 1);
  std::vector<std::size_t> row(right.size() + 1);
  std::vector<std::size_t> next(right.size() + 1);
  for (std::size_t column = 0; column <= right.size(); ++column) row[column] = column;
  for (std::size_t line = 1; line <= left.size(); ++line) {
    next[0] = line;
    for (std::size_t column = 1; column <= right.size(); ++column) {
      const char a = lower(left[line - 1]);
      const char b = lower(right[column - 1]);
      next[column] =
          std::min({row[column] + 1, next[column - 1] + 1, row[column - 1] + (a == b ? 0U : 1U)});
      const bool swapped =
          line > 1 && column > 1 && a == lower(right[column - 2]) && b == lower(left[line - 2]);
      if (swapped) next[column] = std::min(next[column], before[column - 2] + 1);
    }
    before.swap(row);
    row.swap(next);
  }
  return row.back();
}

bool is_part(std::string_view text) { return !text.empty() && text != "." && text != ".."; }

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('/') + 1); }

}  // namespace

Result<> valid_name(std::string_view text) {
  if (text.empty() || text.size() > kMaxEntryNameBytes) {
    return refuse_text(text, format("a name has 1 to {} bytes, this one {}", kMaxEntryNameBytes,
                                    format_count(text.size())));
  }
  if (!is_printable(text)) return refuse_text(text, "a name is UTF-8 without control characters");
  if (text.find('@') != std::string_view::npos)
    return refuse_text(text, "a name has no @, which stands before a generation or a fingerprint");
  if (text.starts_with('-') || text.starts_with('~'))
    return refuse_text(text, format("a name does not start with {}", text.front()));
  if (text.starts_with(' ') || text.ends_with(' '))
    return refuse_text(text, "a name has no space at either end");
  if (std::count(text.begin(), text.end(), '/') > 1)
    return refuse_text(text,
                       "a name has one / at most, as in org/name; a path starts with / or ./");
  const std::size_t slash = text.find('/');
  const bool whole = slash == std::string_view::npos;
  if (!is_part(text.substr(0, slash)) || (!whole && !is_part(text.substr(slash + 1))))
    return refuse_text(text, "neither part of a name is empty, . or ..");
  return {};
}

Result<Selector> parse_selector(std::string_view text) {
  if (is_path(text)) return parse_path(text);
  if (text.starts_with('@')) return parse_prefix(text);
  Selector selector;
  const std::size_t at = text.find('@');
  TRY(valid_name(text.substr(0, at)));
  selector.text = text.substr(0, at);
  if (at != std::string_view::npos) {
    if (at + 1 == text.size())
      return refuse_text(text, "after the name's @ stands a generation, a number from 1 on");
    selector.generation = TRY(parse_generation(text, text.substr(at + 1)));
  }
  return selector;
}

std::string to_string(const Selector& selector) {
  if (selector.kind == Selector::Kind::fingerprint) return "@" + selector.text;
  if (!selector.generation) return selector.text;
  return format("{}@{}", selector.text, *selector.generation);
}

std::vector<std::string> nearest(std::string_view name, std::span<const std::string> candidates) {
  struct Near {
    std::size_t distance;
    const std::string* name;
  };
  name = name.substr(0, kMaxEntryNameBytes);
  std::vector<Near> near;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kMaxEntryNameBytes) continue;
    const std::size_t distance = std::min(edit_distance(name, candidate),
                                          edit_distance(last_part(name), last_part(candidate)));
    const std::size_t allowed = std::max<std::size_t>(2, name.size() / 3);
    if (distance <= allowed && distance < std::max(name.size(), candidate.size()))
      near.push_back({distance, &candidate});
  }
  std::sort(near.begin(), near.end(), [](const Near& left, const Near& right) {
    return left.distance != right.distance ? left.distance < right.distance
                                           : *left.name < *right.name;
  });
  std::vector<std::string> names;
  for (const Near& each : near) {
    if (names.size() == kMaxNearest) break;
    if (names.empty() || names.back() != *each.name) names.push_back(*each.name);
  }
  return names;
}

}  // namespace wc::manifest
