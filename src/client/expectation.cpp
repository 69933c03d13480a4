#include "client/expectation.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "manifest/fingerprint.hpp"
#include "manifest/limits.hpp"

namespace wc::client {
namespace {

using Json = nlohmann::json;
using Leaves = std::map<std::string, Json>;

// nlohmann's parser does not recurse, its destructor and this file do.
constexpr int kMaxDepth = 32;

bool is_fingerprint(std::string_view text) {
  return text.size() == manifest::kFingerprintDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::optional<Json> object_in(std::string_view text) {
  int deepest = 0;
  const auto depth = [&](int level, Json::parse_event_t, Json&) {
    deepest = std::max(deepest, level);
    return level <= kMaxDepth;  // what is deeper is left out, and refused below
  };
  Json value = Json::parse(text, depth, false);
  if (value.is_discarded() || !value.is_object() || deepest > kMaxDepth) return std::nullopt;
  return value;
}

// What says the same as an absent field.
bool says_nothing(std::string_view path, const Json& value) {
  if (value.is_null() || value == "" || (value.is_structured() && value.empty())) return true;
  if (!path.starts_with("partition.")) return path == "form" && value == "raw";
  return (path.ends_with(".size") && value == 1) || (path.ends_with(".rank") && value == 0);
}

std::string step_of(std::string_view path, const Json& element, std::size_t index) {
  if (path == "source.shards" && element.is_object()) {
    const auto name = element.find("name");
    if (name != element.end() && name->is_string()) return name->dump();
  }
  return std::to_string(index);
}

void collect(const std::string& path, const Json& value, Leaves& to) {
  if (says_nothing(path, value)) return;
  if (value.is_object()) {
    for (const auto& [key, member] : value.items())
      collect(path.empty() ? key : path + "." + key, member, to);
  } else if (value.is_array()) {
    for (std::size_t at = 0; at < value.size(); ++at)
      collect(path + "[" + step_of(path, value[at], at) + "]", value[at], to);
  } else {
    to.emplace(path, value);
  }
}

std::string shown(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// A field that is asked to be absent or at its default, and is not.
void collect_absent(const std::string& path, const Json& expected, const Leaves& actual,
                    std::vector<manifest::Difference>& to) {
  if (says_nothing(path, expected)) {
    if (expected.is_null()) return;
    for (auto at = actual.lower_bound(path); at != actual.end() && at->first.starts_with(path);
         ++at) {
      const bool below = at->first.size() == path.size() || at->first[path.size()] == '.' ||
                         at->first[path.size()] == '[';
      if (below) to.push_back({at->first, shown(expected), shown(at->second)});
    }
  } else if (expected.is_object()) {
    for (const auto& [key, member] : expected.items())
      collect_absent(path.empty() ? key : path + "." + key, member, actual, to);
  }
}

}  // namespace

Result<> check_expectation(std::string_view expect, const Identity& actual) {
  if (expect.empty()) return {};
  if (is_fingerprint(expect)) {
    if (expect == actual.fingerprint) return {};
    return fail(Code::mismatch, "the fingerprint is {}, expected {}", actual.fingerprint, expect);
  }
  const auto wanted = object_in(expect);
  if (!wanted) {
    return fail(Code::invalid_argument,
                "what is expected is neither a fingerprint (32 hexadecimal digits) nor a JSON "
                "object with fields of its document");
  }
  const auto document = object_in(actual.document);
  if (!document) return fail(Code::corrupt, "the entry's fingerprint document is no JSON object");
  Leaves have;
  collect("", *document, have);
  Leaves want;
  collect("", *wanted, want);
  std::vector<manifest::Difference> differences;
  for (const auto& [field, value] : want) {
    const auto found = have.find(field);
    if (found != have.end() && found->second == value) continue;
    differences.push_back(
        {field, shown(value), found == have.end() ? "(absent)" : shown(found->second)});
  }
  collect_absent("", *wanted, have, differences);
  if (differences.empty()) return {};
  return fail(Code::mismatch, "{}", manifest::describe(differences));
}

}  // namespace wc::client
