#include "cli/progress.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <unistd.h>

#include "base/units.hpp"
#include "cli/text.hpp"

namespace wc::cli {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::string_view kEraseLine = "\r\x1b[K";

double share_of(const wc_progress& progress) {
  if (progress.total_bytes == 0) return 0;
  const double share =
      static_cast<double>(progress.done_bytes) / static_cast<double>(progress.total_bytes);
  return std::min(share, 1.0);
}

std::string rate_of(const wc_progress& progress) {
  if (progress.bytes_per_s == 0) return {};
  return format(", {}", format_rate(progress.bytes_per_s, std::chrono::seconds(1)));
}

std::string left_of(const wc_progress& progress) {
  if (progress.bytes_per_s == 0 || progress.total_bytes <= progress.done_bytes) return {};
  const auto left = static_cast<double>(progress.total_bytes - progress.done_bytes) /
                    static_cast<double>(progress.bytes_per_s);
  constexpr double kUntold = 1e6;
  if (left > kUntold) return {};
  const auto seconds = std::chrono::seconds(static_cast<std::int64_t>(left + 1));
  return format(", {} left", format_duration(seconds));
}

std::string subject(const wc_progress& progress, std::string_view verb) {
  return progress.waiting != 0 ? "waiting for another process that loads it" : std::string(verb);
}

std::string figures(const wc_progress& progress) {
  if (progress.total_bytes == 0) return {};
  return format("{} of {}{}{}", format_bytes(progress.done_bytes),
                format_bytes(progress.total_bytes), rate_of(progress), left_of(progress));
}

}  // namespace

ProgressMode progress_mode(std::string_view asked, const Terminal& terminal) {
  if (asked == "plain") return ProgressMode::plain;
  if (asked == "json") return ProgressMode::json;
  if (asked == "none") return ProgressMode::none;
  return terminal.interactive ? ProgressMode::bar : ProgressMode::plain;
}

std::string bar_line(const wc_progress& progress, std::string_view verb, std::size_t columns) {
  constexpr std::size_t kLongestBar = 30;
  constexpr std::size_t kShortestBar = 5;
  std::string line = subject(progress, verb);
  const std::string numbers = figures(progress);
  if (!numbers.empty()) {
    const std::string percent = format(" {:3.0f}%  ", share_of(progress) * 100);
    const std::size_t texts = line.size() + percent.size() + numbers.size() + 3;
    const std::size_t room = columns > texts ? std::min(columns - texts, kLongestBar) : 0;
    if (room >= kShortestBar) {
      const auto full = static_cast<std::size_t>(share_of(progress) * static_cast<double>(room));
      line += " [" + std::string(full, '=') + std::string(room - full, ' ') + "]";
    }
    line += percent + numbers;
  }
  return clipped(line, columns);
}

std::string plain_line(const wc_progress& progress, std::string_view verb) {
  std::string line = subject(progress, verb);
  const std::string numbers = figures(progress);
  if (!numbers.empty()) line += format(": {:.0f}%, {}", share_of(progress) * 100, numbers);
  return line;
}

std::string json_line(const wc_progress& progress) {
  return format(
      R"({{"done_bytes":{},"total_bytes":{},"bytes_per_s":{},"elapsed_s":{:.3f},"waiting":{}}})",
      progress.done_bytes, progress.total_bytes, progress.bytes_per_s,
      seconds_of(progress.elapsed_ns), progress.waiting != 0);
}

Progress::Progress(ProgressMode mode, Terminal terminal, std::string verb)
    : mode_(mode), terminal_(terminal), verb_(std::move(verb)) {}

Progress::~Progress() {
  if (drawn_) write_if_possible(FdView(STDERR_FILENO), kEraseLine);
}

void Progress::show(const wc_progress* progress, void* self) {
  auto& progress_of_call = *static_cast<Progress*>(self);
  const std::lock_guard lock(progress_of_call.mutex_);
  progress_of_call.draw(*progress);
}

// Lines come once a second, the first after one: what is quicker needs none. That this call waits
// for somebody is told at once.
bool Progress::due(const wc_progress& progress) {
  const bool news = progress.waiting != 0 && !std::exchange(waiting_told_, progress.waiting != 0);
  if (!news && progress.elapsed_ns < last_ns_ + kSecond) return false;
  last_ns_ = progress.elapsed_ns;
  return true;
}

void Progress::draw(const wc_progress& progress) {
  std::string out;
  if (mode_ == ProgressMode::bar) {
    drawn_ = true;
    // One cell is left free: a full line would wrap on some terminals.
    out = format("{}{}", kEraseLine, bar_line(progress, verb_, terminal_.columns - 1));
  } else if (mode_ != ProgressMode::none && due(progress)) {
    out = (mode_ == ProgressMode::json ? json_line(progress) : plain_line(progress, verb_)) + '\n';
  }
  // A stderr that nobody reads is no reason to end a load.
  write_if_possible(FdView(STDERR_FILENO), out);
}

}  // namespace wc::cli
