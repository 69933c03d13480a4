#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/units.hpp"
#include "manifest/fingerprint_json.hpp"
#include "manifest/json.hpp"
#include "manifest/text.hpp"

namespace wc::manifest {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kMaxShardBytes = (std::uint64_t{1} << 53) - 1;
constexpr std::size_t kMaxFieldBytes = 1024;
constexpr std::uint32_t kMaxWorld = std::uint32_t{1} << 20;

struct TextField {
  const char* path;
  const char* key;
  const std::string* text;
};

Failure refuse_value(std::string_view field, const std::string& what) {
  return fail(Code::invalid_argument, "{}: {}", field, what);
}

Result<> check_text(std::string_view field, std::string_view text) {
  if (text.size() <= kMaxFieldBytes && is_plain(text)) return {};
  return refuse_value(field, format("\"{}\": more than {} bytes, no UTF-8, or a control character",
                                    shown(text), format_count(kMaxFieldBytes)));
}

// A JSON object given as text; an empty one is as good as none.
Result<Json> object_of(std::string_view field, const std::string& text) {
  if (text.empty()) return Json::object();
  auto value = parse_json(text);
  if (!value) return Failure(std::move(value).error().within(std::string(field) + ": "));
  if (!value->is_object()) return refuse_value(field, "is no JSON object");
  return value;
}

Result<Json> document_of(const SourceShard& shard) {
  const std::string field = format("source.shards[\"{}\"]", shown(shard.name));
  TRY(check_text(field + ".name", shard.name));
  if (shard.name.empty()) return refuse_value(field, "the name is empty");
  if (shard.bytes > kMaxShardBytes)
    return refuse_value(field + ".bytes", format_count(shard.bytes) + " is past 2^53 - 1");
  if (!is_digest(shard.digest)) {
    return refuse_value(field + ".digest",
                        format("\"{}\" is no digest, like \"xxh3t-4m:\" and 32 hexadecimal digits",
                               shown(shard.digest)));
  }
  return Json{{"bytes", shard.bytes}, {"digest", shard.digest}, {"name", shard.name}};
}

Result<Json> document_of(const Source& source) {
  TRY(check_text("source.source_id", source.source_id));
  if (source.shards.empty() == source.source_id.empty())
    return refuse_value("source", "needs either shards or a source_id, and not both");
  if (source.shards.size() > kMaxFiles) {
    return refuse_value("source.shards",
                        format("{} shards, at most {}", format_count(source.shards.size()),
                               format_count(kMaxFiles)));
  }
  if (!source.selection.empty() && !is_digest(source.selection))
    return refuse_value("source.selection", format("\"{}\" is no digest", shown(source.selection)));
  if (!source.selection.empty() && source.shards.empty())
    return refuse_value("source.selection", "selects from shards, and there are none");
  if (source.shards.empty()) return Json{{"source_id", source.source_id}};

  std::vector<const SourceShard*> sorted;
  for (const SourceShard& shard : source.shards) sorted.push_back(&shard);
  std::sort(sorted.begin(), sorted.end(),
            [](const auto* left, const auto* right) { return left->name < right->name; });
  Json shards = Json::array();
  for (std::size_t at = 0; at < sorted.size(); ++at) {
    if (at > 0 && sorted[at - 1]->name == sorted[at]->name)
      return refuse_value(format("source.shards[\"{}\"]", shown(sorted[at]->name)), "stands twice");
    Json shard = TRY(document_of(*sorted[at]));
    shards.push_back(std::move(shard));
  }
  Json document{{"shards", std::move(shards)}};
  if (!source.selection.empty()) document["selection"] = source.selection;
  return document;
}

Result<Json> document_of(const Place& place, const std::string& field) {
  if (place.size == 0 || place.size > kMaxWorld || place.rank >= place.size) {
    return refuse_value(field, format("rank {} of size {}: the size is 1 to {}, the rank below it",
                                      place.rank, place.size, format_count(kMaxWorld)));
  }
  if (place.size == 1) return Json();
  return Json{{"rank", place.rank}, {"size", place.size}};
}

Result<Json> document_of(const Partition& partition) {
  Json document = Json::object();
  const std::pair<const char*, const Place*> places[] = {{"data", &partition.data},
                                                         {"expert", &partition.expert},
                                                         {"pipeline", &partition.pipeline},
                                                         {"tensor", &partition.tensor}};
  for (const auto& [name, place] : places) {
    Json written = TRY(document_of(*place, std::string("partition.") + name));
    if (!written.is_null()) document[name] = std::move(written);
  }
  return document;
}

}  // namespace

Result<Json> document_of(const Form& form) {
  const TextField fields[] = {
      {"form.engine", "engine", &form.engine},
      {"form.engine_version", "engine_version", &form.engine_version},
      {"form.quantization", "quantization", &form.quantization},
      {"form.dtype", "dtype", &form.dtype},
      {"form.device_capability", "device_capability", &form.device_capability},
  };
  Json document = Json::object();
  for (const TextField& field : fields) {
    TRY(check_text(field.path, *field.text));
    if (!field.text->empty()) document[field.key] = *field.text;
  }
  Json config = TRY(object_of("form.quantization_config", form.quantization_config));
  Json extra = TRY(object_of("form.extra", form.extra));
  if (!config.empty()) document["quantization_config"] = std::move(config);
  if (!extra.empty()) document["extra"] = std::move(extra);
  if (!form.raw()) return document;
  if (document.empty()) return Json("raw");
  return refuse_value(std::string("form.") + document.begin().key(),
                      "belongs to what an engine made; without form.engine the form is raw");
}

Result<Json> document_of(const Fingerprint& fingerprint) {
  Json source = TRY(document_of(fingerprint.source));
  Json form = TRY(document_of(fingerprint.form));
  Json partition = TRY(document_of(fingerprint.partition));
  return Json{{"source", std::move(source)},
              {"form", std::move(form)},
              {"partition", std::move(partition)}};
}

}  // namespace wc::manifest
