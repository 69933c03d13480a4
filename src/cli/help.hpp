// --help, made from the descriptions of the verbs.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/verb.hpp"

namespace wc::cli {

/// "usage: weightcache load [OPTIONS] SOURCE".
[[nodiscard]] std::string usage_line(const Verb& verb);
[[nodiscard]] std::string usage_line();

/// Of the program. `columns` 0: 80.
[[nodiscard]] std::string program_help(const std::vector<Verb>& verbs, const Options& common,
                                       std::size_t columns);
[[nodiscard]] std::string verb_help(const Verb& verb, const Options& common, std::size_t columns);

/// "--timeout DURATION", "-h, --help", "[NAME]".
[[nodiscard]] std::string option_label(const Option& option);
/// "load [OPTIONS] SOURCE", as it stands behind the program's name.
[[nodiscard]] std::string synopsis(const Verb& verb);

}  // namespace wc::cli
