#include <algorithm>
#include <limits>

#include <nlohmann/json.hpp>

#include "manifest/fingerprint_json.hpp"
#include "manifest/json.hpp"
#include "manifest/text.hpp"

namespace wc::manifest {
namespace {

using Json = nlohmann::json;

Failure refuse_field(const std::string& field, std::string_view what) {
  return fail(Code::invalid_argument, "field \"{}\": {}", field, what);
}

// One object of the document, member by member; what nobody asked for is an error.
class Members {
 public:
  static Result<Members> of(const Json& value, std::string field) {
    if (value.is_null() || value.is_object()) return Members(value, std::move(field));
    return refuse_field(field, "is no object");
  }

  /// Nothing where the member is absent or null.
  [[nodiscard]] const Json* get(const char* key) {
    known_.emplace_back(key);
    const auto at = value_.is_object() ? value_.find(key) : value_.end();
    return at == value_.end() || at->is_null() ? nullptr : &*at;
  }
  Result<> text(const char* key, std::string& to) {
    const Json* value = get(key);
    if (value == nullptr) return {};
    if (!value->is_string()) return refuse_field(name_of(key), "is no text");
    to = value->get_ref<const std::string&>();
    return {};
  }
  Result<> object(const char* key, std::string& to) {
    const Json* value = get(key);
    if (value == nullptr) return {};
    if (!value->is_object()) return refuse_field(name_of(key), "is no object");
    if (!value->empty()) to = write_canonical(*value);
    return {};
  }
  template <typename Number>
  Result<> number(const char* key, Number& to) {
    const Json* value = get(key);
    if (value == nullptr) return {};
    if (!value->is_number_unsigned()) return refuse_field(name_of(key), "is no number from 0 on");
    const auto given = value->get<std::uint64_t>();
    if (given > std::numeric_limits<Number>::max())
      return refuse_field(name_of(key), "is too large");
    to = static_cast<Number>(given);
    return {};
  }
  [[nodiscard]] Result<> done() const {
    if (!value_.is_object()) return {};
    for (const auto& [key, unused] : value_.items()) {
      if (std::find(known_.begin(), known_.end(), key) == known_.end())
        return refuse_field(name_of(shown(key)), "is unknown");
    }
    return {};
  }
  [[nodiscard]] std::string name_of(const std::string& key) const {
    return field_.empty() ? key : field_ + "." + key;
  }

 private:
  Members(const Json& value, std::string field) : value_(value), field_(std::move(field)) {}
  const Json& value_;
  std::string field_;
  std::vector<std::string> known_;
};

const Json& or_null(const Json* value) {
  static const Json null;
  return value == nullptr ? null : *value;
}

Result<SourceShard> read_shard(const Json& value, std::size_t index) {
  auto members = TRY(Members::of(value, format("source.shards[{}]", index)));
  SourceShard shard;
  TRY(members.text("name", shard.name));
  TRY(members.number("bytes", shard.bytes));
  TRY(members.text("digest", shard.digest));
  TRY(members.done());
  return shard;
}

Result<Source> read_source(const Json& value) {
  auto members = TRY(Members::of(value, "source"));
  Source source;
  TRY(members.text("source_id", source.source_id));
  TRY(members.text("selection", source.selection));
  const Json& shards = or_null(members.get("shards"));
  if (!shards.is_null() && !shards.is_array()) return refuse_field("source.shards", "is no array");
  for (std::size_t at = 0; at < shards.size(); ++at) {
    SourceShard shard = TRY(read_shard(shards[at], at));
    source.shards.push_back(std::move(shard));
  }
  TRY(members.done());
  std::sort(source.shards.begin(), source.shards.end(),
            [](const auto& left, const auto& right) { return left.name < right.name; });
  return source;
}

Result<Form> read_form(const Json& value) {
  if (value.is_string() && value.get_ref<const std::string&>() == "raw") return Form{};
  auto members = TRY(Members::of(value, "form"));
  Form form;
  TRY(members.text("engine", form.engine));
  TRY(members.text("engine_version", form.engine_version));
  TRY(members.text("quantization", form.quantization));
  TRY(members.object("quantization_config", form.quantization_config));
  TRY(members.text("dtype", form.dtype));
  TRY(members.text("device_capability", form.device_capability));
  TRY(members.object("extra", form.extra));
  TRY(members.done());
  return form;
}

Result<Place> read_place(const Json& value, std::string field) {
  auto members = TRY(Members::of(value, std::move(field)));
  Place place;
  TRY(members.number("size", place.size));
  TRY(members.number("rank", place.rank));
  TRY(members.done());
  return place;
}

Result<Partition> read_partition(const Json& value) {
  auto members = TRY(Members::of(value, "partition"));
  Partition partition;
  partition.tensor = TRY(read_place(or_null(members.get("tensor")), "partition.tensor"));
  partition.pipeline = TRY(read_place(or_null(members.get("pipeline")), "partition.pipeline"));
  partition.expert = TRY(read_place(or_null(members.get("expert")), "partition.expert"));
  partition.data = TRY(read_place(or_null(members.get("data")), "partition.data"));
  TRY(members.done());
  return partition;
}

}  // namespace

Result<Fingerprint> parse_fingerprint(std::string_view text) {
  const Json document = TRY(parse_json(text));
  if (!document.is_object()) return fail(Code::invalid_argument, "is no JSON object");
  auto members = TRY(Members::of(document, ""));
  Fingerprint fingerprint;
  fingerprint.source = TRY(read_source(or_null(members.get("source"))));
  fingerprint.form = TRY(read_form(or_null(members.get("form"))));
  fingerprint.partition = TRY(read_partition(or_null(members.get("partition"))));
  TRY(members.done());
  TRY(document_of(fingerprint));
  return fingerprint;
}

}  // namespace wc::manifest
