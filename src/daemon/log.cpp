#include "daemon/log.hpp"

#include <cstdlib>
#include <string>
#include <unordered_map>

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace wc::daemon {
namespace {

using Clock = std::chrono::steady_clock;

// With a longer line than PIPE_BUF, a pipe that poll() calls writable could still block.
constexpr std::size_t kMaxLineBytes = 2048;
constexpr std::size_t kMaxSites = 1024;

struct Site {
  Clock::time_point window;
  unsigned lines = 0;
  std::uint64_t left_out = 0;
};

struct State {
  LogOptions options;
  std::unordered_map<const void*, Site> sites;
  std::uint64_t dropped = 0;
};

State& state() {
  static State only;
  return only;
}

std::string_view priority_of(Level level) {
  switch (level) {
    case Level::debug:
      return "<7>";
    case Level::info:
      return "<6>";
    case Level::warning:
      return "<4>";
    case Level::error:
      return "<3>";
  }
  return "<3>";
}

bool has_room(FdView fd) {
  pollfd ready{fd.get(), POLLOUT, 0};
  return ::poll(&ready, 1, 0) == 1 && (ready.revents & POLLOUT) != 0;
}

void write_line(Level level, std::string_view text) {
  State& log = state();
  std::string line(log.options.journal ? priority_of(level) : "");
  line += "weightcache: ";
  line += text.substr(0, kMaxLineBytes);
  for (char& character : line) {
    if (static_cast<unsigned char>(character) < ' ') character = ' ';
  }
  if (log.dropped > 0) line += format(" ({} lines before this one were lost)", log.dropped);
  line += '\n';
  const bool written =
      has_room(log.options.output) &&
      ::write(log.options.output.get(), line.data(), line.size()) == std::ssize(line);
  log.dropped = written ? 0 : log.dropped + 1;
}

// Nothing: this line is one too many.
bool admit(Site& site, std::uint64_t& left_out) {
  const auto now = Clock::now();
  if (site.lines == 0 || now - site.window >= kLogWindow) {
    left_out = std::exchange(site.left_out, 0);
    site.window = now;
    site.lines = 0;
  }
  if (site.lines < kLinesPerWindow) {
    ++site.lines;
    return true;
  }
  ++site.left_out;
  return false;
}

}  // namespace

bool stderr_is_journal() {
  const char* stream = ::getenv("JOURNAL_STREAM");  // "DEVICE:INODE" of what stderr was
  struct stat info{};
  if (stream == nullptr || ::fstat(2, &info) != 0) return false;
  return std::string_view(stream) == format("{}:{}", info.st_dev, info.st_ino);
}

void start_log(const LogOptions& options) {
  state() = State{options, {}, 0};
  set_log([](Level level, std::string_view line) {
    if (level >= state().options.least) write_line(level, line);
  });
}

void detail::report(Level level, const void* site, std::string_view text, fmt::format_args args) {
  State& log = state();
  if (level < log.options.least) return;
  if (log.sites.size() >= kMaxSites) log.sites.clear();
  std::uint64_t left_out = 0;
  if (!admit(log.sites[site], left_out)) return;
  std::string line = wc::detail::vformat({text.data(), text.size()}, args);
  if (left_out > 0) line += wc::format(" (and {} more like it)", left_out);
  write_line(level, line);
}

}  // namespace wc::daemon
