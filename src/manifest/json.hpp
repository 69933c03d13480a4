// Strict JSON for identities: RFC 8259 to the letter, no key twice, bounded; and RFC 8785 out of
// it. Inside this folder only; nlohmann's own header is included by .cpp files alone.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "base/result.hpp"

namespace wc::manifest {

struct JsonOptions {
  /// A floating-point number, or an integer past +-(2^53 - 1), is refused unless this is set.
  bool floats = false;
};

/// Errors: invalid_argument, naming the field (a path like `form.extra.layers[3]`) or the byte.
[[nodiscard]] Result<nlohmann::json> parse_json(std::string_view text,
                                                const JsonOptions& options = {});

/// Of a value without floating-point numbers, as parse_json() gives it.
[[nodiscard]] std::string write_canonical(const nlohmann::json& value);

}  // namespace wc::manifest
