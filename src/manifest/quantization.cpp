#include "manifest/quantization.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include <nlohmann/json.hpp>

#include "manifest/json.hpp"
#include "manifest/text.hpp"

namespace wc::manifest {
namespace {

using Json = nlohmann::json;

// Why a method that is in the table does not serve in this configuration; nothing where it does.
using Predicate = std::optional<std::string> (*)(const QuantizationQuery&, const Json&);

std::optional<std::string> always(const QuantizationQuery& /*query*/, const Json& /*config*/) {
  return std::nullopt;
}

bool says(const Json& config, const char* key) {
  const auto at = config.find(key);
  return at != config.end() && at->is_boolean() && at->get<bool>();
}

bool is_block_size(const Json& value) {
  return value.is_array() && value.size() == 2 &&
         std::all_of(value.begin(), value.end(), [](const Json& size) {
           return size.is_number_unsigned() && size.get<std::uint64_t>() > 0;
         });
}

// Block-wise fp8 keeps shapes and layout. Per-tensor fp8 transposes what it shares, repacked scales
// change meaning by a mark that no tensor carries, and 4-bit experts are repacked for their kernel.
std::optional<std::string> block_wise(const QuantizationQuery& query, const Json& config) {
  const auto size = config.find("weight_block_size");
  if (size == config.end() || size->is_null())
    return "it has no weight_block_size: only block-wise fp8 is verified";
  if (!is_block_size(*size))
    return "its weight_block_size is " + shown(size->dump()) + ", not two numbers";
  if (query.scales_repacked_ue8m0 || says(config, "format_ue8m0"))
    return "its scales are repacked as UE8M0";
  if (query.fp4_experts || says(config, "is_fp4_experts")) return "its experts are FP4";
  return std::nullopt;
}

constexpr std::array<VerifiedMethod, 2> kMethods = {{
    {"", ""},
    {"fp8", "with weight_block_size, scales not repacked as UE8M0, no FP4 experts"},
}};
constexpr std::array<Predicate, kMethods.size()> kProblems = {{always, block_wise}};

std::string listed() {
  std::string out;
  for (const VerifiedMethod& method : kMethods) {
    if (!out.empty()) out += ", ";
    out += format("\"{}\"", method.name);
    if (method.name.empty()) out += " (unquantized)";
    if (!method.condition.empty()) out += format(" ({})", method.condition);
  }
  return out;
}

std::string_view name_of(GatePlace place) {
  return place == GatePlace::publish ? "publish" : "attach";
}

}  // namespace

std::span<const VerifiedMethod> verified_methods() { return kMethods; }

Result<> quantization_verdict(const QuantizationQuery& query) {
  Json config = Json::object();
  if (!query.config.empty()) {
    auto parsed = parse_json(query.config, {.floats = true});
    if (parsed && !parsed->is_object()) parsed = fail(Code::invalid_argument, "is no JSON object");
    if (!parsed) return Failure(std::move(parsed).error().within("quantization configuration: "));
    config = std::move(*parsed);
  }
  std::string reason = "nobody has shown that all it does to the weights is in their bytes";
  for (std::size_t at = 0; at < kMethods.size(); ++at) {
    if (kMethods[at].name != query.method) continue;
    const auto problem = kProblems[at](query, config);
    if (!problem) return {};
    reason = *problem;
  }
  return fail(
      Code::unsupported,
      "{}: quantization method \"{}\" is not verified for sharing: {}; verified methods: "
      "{}; ways out: load without the cache, publish the raw checkpoint and let each engine "
      "quantize for itself, or prove the method with the parity tool",
      name_of(query.place), shown(query.method), reason, listed());
}

}  // namespace wc::manifest
