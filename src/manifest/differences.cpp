#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "base/units.hpp"
#include "manifest/fingerprint.hpp"
#include "manifest/fingerprint_json.hpp"
#include "manifest/json.hpp"
#include "manifest/text.hpp"

namespace wc::manifest {
namespace {

using Json = nlohmann::json;
using Fields = std::map<std::string, std::string>;

constexpr std::size_t kDescribed = 16;
constexpr const char* kAbsent = "(absent)";

// Every leaf under its path. Shards go by name, so that one more does not shift all others.
// Recursion is bounded by the depth that parse_json() admits.
void flatten(const std::string& path, const Json& value, Fields& to) {
  if (value.is_object() && !value.empty()) {
    for (const auto& [key, member] : value.items())
      flatten(path.empty() ? key : path + "." + key, member, to);
  } else if (value.is_array() && !value.empty()) {
    const bool shards = path == "source.shards";
    for (std::size_t at = 0; at < value.size(); ++at) {
      if (shards) {
        Json shard = value[at];
        const auto name = format("{}[\"{}\"]", path, shard["name"].get<std::string>());
        shard.erase("name");
        flatten(name, shard, to);
      } else {
        flatten(format("{}[{}]", path, at), value[at], to);
      }
    }
  } else {
    to[path] = write_canonical(value);
  }
}

Result<Fields> fields_of(const Fingerprint& fingerprint) {
  const Json document = TRY(document_of(fingerprint));
  Fields fields;
  flatten("", document, fields);
  // The empty partition is no field of its own beside one that is not empty.
  if (document["partition"].empty()) fields.erase("partition");
  return fields;
}

}  // namespace

Result<std::vector<Difference>> differences(const Fingerprint& expected,
                                            const Fingerprint& actual) {
  const Fields wanted = TRY(fields_of(expected));
  const Fields found = TRY(fields_of(actual));
  Fields all = wanted;
  all.insert(found.begin(), found.end());
  std::vector<Difference> result;
  for (const auto& [field, unused] : all) {
    const auto want = wanted.find(field);
    const auto have = found.find(field);
    Difference difference{field, want == wanted.end() ? kAbsent : want->second,
                          have == found.end() ? kAbsent : have->second};
    if (difference.expected != difference.actual) result.push_back(std::move(difference));
  }
  return result;
}

std::string describe(std::span<const Difference> differences) {
  std::string out;
  for (const Difference& difference : differences.first(std::min(differences.size(), kDescribed))) {
    if (!out.empty()) out += "; ";
    out += format("{} is {}, expected {}", shown(difference.field), shown(difference.actual),
                  shown(difference.expected));
  }
  if (differences.size() > kDescribed)
    out += format("; and {} more", format_count(differences.size() - kDescribed));
  return out;
}

}  // namespace wc::manifest
