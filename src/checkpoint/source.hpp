// What a user calls a checkpoint (a folder, a file, a repository id), resolved to a folder that can
// be read beneath its root, and to a default name.
#pragma once

#include <string>

#include "base/result.hpp"
#include "checkpoint/beneath.hpp"
#include "checkpoint/checkpoint.hpp"

namespace wc::checkpoint {

struct Source {
  Beneath folder;
  std::string default_name;
  std::string file;  // the one file of the folder that was named; empty where the folder was
};

/// Errors: not_found, invalid_argument, denied, corrupt (refs/main), io.
[[nodiscard]] Result<Source> resolve(const std::string& source, const OpenOptions& options);

}  // namespace wc::checkpoint
