// The manual pages, made from the same descriptions as --help: roff, with the man macros.
#pragma once

#include <string>
#include <vector>

#include "cli/verb.hpp"

namespace wc::cli {

/// weightcache(1).
[[nodiscard]] std::string program_page(const std::vector<Verb>& verbs, const Options& common);
/// weightcache-load(1).
[[nodiscard]] std::string verb_page(const Verb& verb, const std::vector<Verb>& verbs,
                                    const Options& common);

}  // namespace wc::cli
