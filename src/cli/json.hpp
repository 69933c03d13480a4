// The documents that --json prints, in the field names that scripts rely on: docs/CLI.md lists
// them.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "cli/library.hpp"

namespace wc::cli {

using Json = nlohmann::ordered_json;

/// name, form, rank, world, fingerprint, generation, device, transport, tensors, bytes, segments.
[[nodiscard]] Json identity_json(const wc_entry_info& entry);
/// The same with state, leases, pinned, and what `ls` shows beside.
[[nodiscard]] Json entry_json(const wc_entry_info& entry);
/// {"code": ..., "message": ...}
[[nodiscard]] Json error_json(const Error& error);

/// On one line. Bytes that are no UTF-8 are replaced, so that every document is JSON.
[[nodiscard]] std::string dumped(const Json& document);

}  // namespace wc::cli
