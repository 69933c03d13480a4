// What stands in a checkpoint's folder, and which of it is the checkpoint where no index says so:
// exactly one `*.safetensors`, or a complete numbered set. Everything else is ambiguous, and the
// message lists what is there.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace wc::checkpoint {

inline constexpr std::string_view kIndexName = "model.safetensors.index.json";

struct Listing {
  bool has_index = false;
  std::vector<std::string> shards;  // *.safetensors, sorted; hidden files don't count
  std::vector<std::string> others;  // the first few, for messages
};

/// Errors: not_found, denied, io.
[[nodiscard]] Result<Listing> list_folder(const std::string& folder);

/// Directory rule 6; pure. Errors: not_found (no shard at all), invalid_argument (ambiguous, or a
/// set with gaps).
[[nodiscard]] Result<std::vector<std::string>> choose_shards(const Listing& listing);

}  // namespace wc::checkpoint
