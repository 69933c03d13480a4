// The library's only voice: a function of the caller's. Set once at start; without one, silence.
// The function may be called from any thread, one call at a time is not promised.
#pragma once

#include <functional>
#include <string_view>

#include "base/error.hpp"

namespace wc {

enum class Level : int { debug = 0, info = 1, warning = 2, error = 3 };

using LogFunction = std::function<void(Level, std::string_view)>;

/// Replaces the log function; an empty one silences. Thread-safe.
void set_log(LogFunction function);
/// One line, lower case, what happened to what.
void log_line(Level level, std::string_view line);

template <typename... Args>
void log(Level level, fmt::format_string<Args...> text, Args&&... args) {
  log_line(level, detail::vformat(text, fmt::make_format_args(args...)));
}

}  // namespace wc
