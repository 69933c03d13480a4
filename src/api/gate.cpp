#include "api/gate.hpp"

#include "weightcache/weightcache.h"

#include "api/guard.hpp"
#include "manifest/fingerprint.hpp"

namespace wc::api {

Result<> check_gate(std::string_view fingerprint_json, manifest::GatePlace place) {
  // Documents are canonical here, so that a raw form needs no parsing: readers attach in a ms.
  constexpr std::string_view kRaw = "\"form\":\"raw\"";
  if (fingerprint_json.find(kRaw) != std::string_view::npos) return {};
  const auto fingerprint = TRY(manifest::parse_fingerprint(fingerprint_json));
  const manifest::Form& form = fingerprint.form;
  if (form.raw()) return {};
  manifest::QuantizationQuery query;
  query.method = form.quantization;
  query.config = form.quantization_config;
  query.place = place;
  return manifest::quantization_verdict(query);
}

}  // namespace wc::api

using wc::Result;
using wc::api::guarded;
using wc::api::required;
namespace manifest = wc::manifest;

extern "C" {

int wc_quantization_check(const char* method, const char* config, int place) {
  return guarded([&]() -> Result<> {
    TRY(required(method, "method"));
    if (place != WC_AT_PUBLISH && place != WC_AT_ATTACH)
      return wc::fail(wc::Code::invalid_argument, "there is no place {}", place);
    manifest::QuantizationQuery query;
    query.method = method;
    query.config = wc::api::text_or_empty(config);
    query.place =
        place == WC_AT_PUBLISH ? manifest::GatePlace::publish : manifest::GatePlace::attach;
    return manifest::quantization_verdict(query);
  });
}

size_t wc_quantization_method_count(void) { return manifest::verified_methods().size(); }

int wc_quantization_method_at(size_t index, const char** name, const char** condition) {
  return guarded([&]() -> Result<> {
    const auto methods = manifest::verified_methods();
    if (index >= methods.size())
      return wc::fail(wc::Code::invalid_argument, "there is no verified method {}: there are {}",
                      index, methods.size());
    // Both are literals, hence terminated.
    if (name != nullptr) *name = methods[index].name.data();
    if (condition != nullptr) *condition = methods[index].condition.data();
    return {};
  });
}

}  // extern "C"
