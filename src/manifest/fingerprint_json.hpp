// The fingerprint's document: from the structs to JSON and back, with every rule about its fields.
// Inside this folder only.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "base/result.hpp"
#include "manifest/fingerprint.hpp"

namespace wc::manifest {

/// Errors: invalid_argument, naming the field.
[[nodiscard]] Result<nlohmann::json> document_of(const Fingerprint& fingerprint);
[[nodiscard]] Result<nlohmann::json> document_of(const Form& form);

}  // namespace wc::manifest
