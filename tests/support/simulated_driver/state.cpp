#include "state.hpp"

#include <charconv>
#include <cstdlib>
#include <ranges>

#include <fcntl.h>
#include <unistd.h>

namespace sim {
namespace {

std::vector<Failure> failures_from(const char* plan) {
  std::vector<Failure> failures;
  for (const auto part : std::views::split(std::string_view(plan == nullptr ? "" : plan), ',')) {
    const std::string_view text(part.begin(), part.end());
    const auto colon = text.find(':');
    const auto equals = text.find('=');
    if (text.empty()) continue;
    if (colon == text.npos || equals == text.npos || equals < colon) {
      refuse("WEIGHTCACHE_SIM_FAIL is CALL:N=RESULT,...");
    }
    Failure failure{std::string(text.substr(0, colon)), 0, CuResult::unknown};
    int result = 0;
    std::from_chars(text.data() + colon + 1, text.data() + equals, failure.nth);
    std::from_chars(text.data() + equals + 1, text.data() + text.size(), result);
    failure.result = static_cast<CuResult>(result);
    failures.push_back(failure);
  }
  return failures;
}

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

// At the process's orderly end: what it leaked goes to the ledger, one line a process.
struct AtExit {
  ~AtExit() {
    const char* path = std::getenv("WEIGHTCACHE_SIM_LEDGER");
    if (path == nullptr) return;
    State& s = state();
    const std::lock_guard lock(s.mutex);
    const std::string found = leaks(s);
    const wc::Fd file(::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (file) {
      write_all(file.get(), wc::format("pid {}: {} calls, {} failed, {}\n", ::getpid(), s.calls,
                                       s.failed, found.empty() ? "nothing leaked" : found));
    }
  }
};

}  // namespace

State& state() {
  static State* const only = [] {
    auto* made = new State;  // never destroyed: threads may call until the very end
    made->failures = failures_from(std::getenv("WEIGHTCACHE_SIM_FAIL"));
    return made;
  }();
  static const AtExit at_exit;
  return *only;
}

std::uint64_t fresh_id(State& s) { return s.next_id++; }

CuResult enter(State& s, std::string_view call) {
  if (!s.initialised && call != "cuInit" && call != "cuGetErrorName") {
    return CuResult::not_initialized;
  }
  ++s.calls;
  const auto used = s.uses.try_emplace(std::string(call), 0).first;
  ++used->second;
  for (const Failure& failure : s.failures) {
    const std::uint64_t count = failure.call == "*" ? s.calls : used->second;
    if ((failure.call == "*" || failure.call == call) && failure.nth == count) {
      ++s.failed;
      return failure.result;
    }
  }
  return CuResult::success;
}

std::string leaks(State& s) {
  std::string text;
  const auto say = [&text](std::size_t count, std::string_view what) {
    if (count > 0) text += wc::format("{}{} {}", text.empty() ? "leaked " : ", ", count, what);
  };
  say(s.memory.size(), "memory handles");
  say(s.mappings.size(), "mappings");
  say(s.ranges.size(), "address ranges");
  say(s.pinned.size(), "pinned buffers");
  say(s.streams.size(), "streams");
  say(s.events.size(), "events");
  std::size_t contexts = 0;
  for (const auto& [device, count] : s.contexts) contexts += static_cast<std::size_t>(count);
  say(contexts, "contexts");
  return text;
}

void refuse(std::string_view why) {
  write_all(STDERR_FILENO, wc::format("simulated CUDA driver: {}\n", why));
  std::abort();
}

}  // namespace sim
