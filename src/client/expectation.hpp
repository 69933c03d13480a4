// What a reader may demand of the weights: any subset of the fingerprint document's fields, or the
// fingerprint itself. Pure.
#pragma once

#include <string_view>

#include "base/result.hpp"

namespace wc::client {

struct Identity {
  std::string_view fingerprint;  // 32 hexadecimal digits
  std::string_view document;     // the canonical one behind it
};

/// `expect` is 32 hexadecimal digits, or a JSON object with some of the document's fields: each
/// that is there must be as it says; null, "", {}, [] and a size of 1 mean that the field may be
/// absent. Shards are compared by name. Errors: mismatch, naming each field with both values;
/// invalid_argument (no such JSON); corrupt (the entry's own document is none).
[[nodiscard]] Result<> check_expectation(std::string_view expect, const Identity& actual);

}  // namespace wc::client
