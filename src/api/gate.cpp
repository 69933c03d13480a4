#include "api/gate.hpp"

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
