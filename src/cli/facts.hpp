// What --help and the manual pages tell beside the verbs themselves: exit statuses, environment.
#pragma once

#include <array>
#include <string_view>

#include "cli/call.hpp"
#include "cli/options.hpp"

namespace wc::cli {

struct Fact {
  std::string_view name;
  std::string_view means;
};

inline constexpr std::string_view kPurpose =
    "Keeps model weights resident, outside the engine: a checkpoint is loaded once, and from then "
    "on "
    "any process attaches to it in milliseconds, without a copy.";

inline constexpr std::array<Fact, 7> kExitStatuses = {{
    {"0", "it is done"},
    {"1", "anything else, by its code: already_exists, mismatch, corrupt, busy, cancelled, ..."},
    {"2", "a wrong call"},
    {"3", "not_found: no such entry or file"},
    {"4", "disconnected: no daemon answers"},
    {"5", "timed_out"},
    {"6", "exhausted: no room on the device"},
}};

inline constexpr std::array<Fact, 4> kEnvironment = {{
    {"WEIGHTCACHE_SOCKET", "the daemon's socket, where --socket is not given"},
    {"WEIGHTCACHE_STRICT", "1: every mapping is read-only, so that a writer is found at once"},
    {"XDG_RUNTIME_DIR", "where a user's daemon listens: in weightcache/socket"},
    {"NO_COLOR", "any value: no colours"},
}};

inline constexpr std::array<Fact, 4> kFirstSteps = {{
    {"weightcache serve --detach", "start the daemon"},
    {"weightcache load ./Llama-3-8B", "make a checkpoint resident"},
    {"weightcache ls", "see what is there"},
    {"weightcache attach Llama-3-8B", "map it, and see how fast that is"},
}};

/// What every verb takes.
void add_common(Options& options, CommonOptions& out);

}  // namespace wc::cli
