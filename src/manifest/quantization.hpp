// The gate: whether sharing the bytes of a model quantized in some way is known to be right.
// Sharing is right only when the whole effect of an engine's post-processing is in what is shared;
// a method is let in by the parity tool's proof, and everything else is refused. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.hpp"

namespace wc::manifest {

/// Where the question is asked.
enum class GatePlace : std::uint8_t { publish, attach };

struct QuantizationQuery {
  std::string_view method{};  // "": unquantized; "fp8"; exact
  std::string_view config{};  // the quantization configuration, a JSON object; "": none
  GatePlace place = GatePlace::publish;
  /// What an engine knows of its own post-processing and no configuration says.
  bool scales_repacked_ue8m0 = false;
  bool fp4_experts = false;
};

struct VerifiedMethod {
  std::string_view name;       // "" for unquantized
  std::string_view condition;  // in words; empty: always
};

/// In the order in which messages list them.
[[nodiscard]] std::span<const VerifiedMethod> verified_methods();

/// Errors: unsupported, naming the method, the place, the verified methods and the ways out;
/// invalid_argument (the configuration is no JSON object).
[[nodiscard]] Result<> quantization_verdict(const QuantizationQuery& query);

}  // namespace wc::manifest
