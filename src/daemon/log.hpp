// The daemon's voice: one line to stderr, lower case, what happened to what. Under journald each
// line begins with its priority. Each call site says at most kLinesPerWindow lines in a window; the
// next window's first line tells how many were left out.
//
// It never blocks: a line that stderr has no room for (a pipe that nobody reads, a stopped
// terminal) is dropped and counted, which is why no logging library's sink serves here.
// Thread rule: the event loop's thread; a forked child has its own state.
#pragma once

#include <chrono>
#include <string_view>

#include "base/fd.hpp"
#include "base/log.hpp"

namespace wc::daemon {

inline constexpr unsigned kLinesPerWindow = 10;
inline constexpr std::chrono::seconds kLogWindow{10};

struct LogOptions {
  FdView output{2};
  Level least = Level::info;
  bool journal = false;  // "<6>" before each line
};

/// Whether stderr is connected to the journal, as $JOURNAL_STREAM says.
[[nodiscard]] bool stderr_is_journal();

/// Where report(), and the log function of the libraries below, write from now on.
void start_log(const LogOptions& options);

namespace detail {
/// `site` tells call sites apart: the address of the format string.
void report(Level level, const void* site, std::string_view format, fmt::format_args args);
}  // namespace detail

template <typename... Args>
void report(Level level, fmt::format_string<Args...> text, Args&&... args) {
  const fmt::string_view format = text;
  detail::report(level, format.data(), {format.data(), format.size()},
                 fmt::make_format_args(args...));
}

}  // namespace wc::daemon
