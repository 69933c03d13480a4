// A process of its own for what goes on after the program has ended: forked before any thread or
// connection is made, out of the terminal's session, with its messages in a log file. The one who
// starts it waits until it says that it is ready, or why it is not.
#pragma once

#include <functional>
#include <string>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace wc::cli {

/// Called once by the detached process: the text goes to the one who waits. False: nobody waits any
/// more.
using Announce = std::function<bool(const std::string&)>;

/// Runs `body` in a detached process and returns what that announced, or what it failed with before
/// it did. Returns only in the calling process. Errors: those of `body`; io; internal (it died
/// without a word).
[[nodiscard]] Result<std::string> run_detached(
    FdView log, const std::function<Result<>(const Announce&)>& body);

}  // namespace wc::cli
