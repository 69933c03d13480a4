// Whether an entry is what its reader expects: a subset of a fingerprint document held against a
// whole one. Pure.
#pragma once

#include <string_view>

#include "base/result.hpp"

namespace wc::api {

/// `expected` is a fingerprint document, any subset of its fields, defaults spelled out or not
/// (null expects an absent field; a list of shards is one field, compared shard by shard); `actual`
/// the entry's canonical one. Errors: mismatch, naming each field with both values;
/// invalid_argument (no such document).
[[nodiscard]] Result<> check_expected(std::string_view expected, std::string_view actual);

}  // namespace wc::api
