#include "api/expect.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "manifest/fingerprint.hpp"

namespace wc::api {
namespace {

using Json = nlohmann::json;
using manifest::Difference;

// Canonical documents leave out what has these values.
bool is_default(std::string_view field, const Json& value) {
  if (value.is_null() || (value.is_array() && value.empty())) return true;
  if (value.is_string()) return value.get_ref<const std::string&>().empty();
  if (!value.is_number_integer() || !field.starts_with("partition.")) return false;
  return (field.ends_with(".size") && value == 1) || (field.ends_with(".rank") && value == 0);
}

const Json* member_of(const Json* object, const std::string& key) {
  if (object == nullptr || !object->is_object()) return nullptr;
  const auto at = object->find(key);
  return at == object->end() ? nullptr : &*at;
}

const Json* named(const Json* shards, const std::string& name) {
  if (shards == nullptr || !shards->is_array()) return nullptr;
  const auto at = std::ranges::find_if(*shards, [&](const Json& shard) {
    const Json* found = member_of(&shard, "name");
    return found != nullptr && *found == name;
  });
  return at == shards->end() ? nullptr : &*at;
}

class Comparison {
 public:
  // The depth is bounded by canonical_json()'s.
  void compare(const std::string& field, const Json& expected, const Json* actual) {
    if (field == "source.shards" && expected.is_array()) {
      compare_shards(field, expected, actual);
    } else if (expected.is_object()) {  // an empty one asks for nothing
      for (const auto& [key, member] : expected.items())
        compare(field.empty() ? key : field + "." + key, member, member_of(actual, key));
    } else {
      compare_value(field, expected, actual);
    }
  }
  [[nodiscard]] const std::vector<Difference>& differences() const { return differences_; }

 private:
  void compare_value(const std::string& field, const Json& expected, const Json* actual) {
    const bool equal = actual == nullptr ? is_default(field, expected) : *actual == expected;
    if (equal || (actual != nullptr && is_default(field, expected) && is_default(field, *actual)))
      return;
    add(field, expected.is_null() ? nullptr : &expected, actual);
  }

  void compare_shards(const std::string& field, const Json& expected, const Json* actual) {
    for (const Json& shard : expected) {
      const Json* name = member_of(&shard, "name");
      if (name == nullptr || !name->is_string()) continue;
      const auto text = name->get<std::string>();
      compare(shard_field(field, text), shard, named(actual, text));
    }
    if (actual == nullptr || !actual->is_array()) return;
    for (const Json& shard : *actual) {
      const auto name = shard.value("name", std::string());
      if (named(&expected, name) == nullptr) add(shard_field(field, name), nullptr, &shard);
    }
  }

  static std::string shard_field(const std::string& field, const std::string& name) {
    return format("{}[\"{}\"]", field, name);
  }

  void add(const std::string& field, const Json* expected, const Json* actual) {
    const auto text = [](const Json* value) {
      return value == nullptr ? std::string("(absent)") : value->dump();
    };
    differences_.push_back({field, text(expected), text(actual)});
  }

  std::vector<Difference> differences_;
};

Result<Json> object_in(std::string_view document, Code code, std::string_view what) {
  Json value = Json::parse(document, nullptr, false);
  if (!value.is_object()) return fail(code, "{} is no JSON object", what);
  return value;
}

}  // namespace

Result<> check_expected(std::string_view expected, std::string_view actual) {
  // The canonical form refuses what no document may contain: floats, duplicates, depth.
  const auto canonical = TRY(manifest::canonical_json(expected));
  const Json wanted =
      TRY(object_in(canonical, Code::invalid_argument, "the expected fingerprint document"));
  const Json found = TRY(object_in(actual, Code::corrupt, "the entry's fingerprint document"));
  Comparison comparison;
  comparison.compare("", wanted, &found);
  if (comparison.differences().empty()) return {};
  return fail(Code::mismatch, "the entry is other weights: {}",
              manifest::describe(comparison.differences()));
}

}  // namespace wc::api
