// The local hub cache: HF_HUB_CACHE, else HF_HOME/hub, else ~/.cache/huggingface/hub (under
// XDG_CACHE_HOME where that is set). Layout: models--ORG--NAME/{refs/main, snapshots/REV, blobs}.
// Reads the environment and refs/main; never the network.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace wc::checkpoint {

/// Whether this could be a repository id, `org/name`, by the hub's rules for the two parts.
[[nodiscard]] bool is_repository_id(std::string_view source);

/// Absolute or relative, as the environment has it.
[[nodiscard]] std::string hub_cache();

/// The folder of the snapshot that refs/main of `org/name` names. Errors: not_found, corrupt, io.
[[nodiscard]] Result<std::string> snapshot_of(const std::string& repository);

/// Where a folder lies in a hub cache.
struct HubPlace {
  std::string root;    // ".../models--org--name"
  std::string inside;  // "snapshots/REV", or a folder below it
  std::string name;    // "org/name", and the folder below
};

/// Nothing for a folder outside of any cache. By its path alone; which must be a real one.
[[nodiscard]] std::optional<HubPlace> hub_place(std::string_view folder);

}  // namespace wc::checkpoint
