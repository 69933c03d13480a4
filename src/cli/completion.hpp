// Completion scripts, made from the descriptions of the verbs. Names of entries are asked of the
// daemon while completing; they come from other users, so no script lets a shell expand them.
#pragma once

#include <string>
#include <vector>

#include "cli/verb.hpp"

namespace wc::cli {

[[nodiscard]] std::string bash_completion(const std::vector<Verb>& verbs, const Options& common);
[[nodiscard]] std::string zsh_completion(const std::vector<Verb>& verbs, const Options& common);
[[nodiscard]] std::string fish_completion(const std::vector<Verb>& verbs, const Options& common);

}  // namespace wc::cli
