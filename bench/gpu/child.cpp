#include "child.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace bench {
namespace {

[[noreturn]] void give_up(const char* what) {
  fmt::print(stderr, "{}\n", what);
  std::exit(1);
}

}  // namespace

Child::Child(const std::vector<std::string>& arguments) {
  std::array<int, 2> in{};
  std::array<int, 2> out{};
  // Close-on-exec: a sibling that kept an end open would keep this child from seeing its end.
  if (::pipe2(in.data(), O_CLOEXEC) != 0 || ::pipe2(out.data(), O_CLOEXEC) != 0) give_up("pipe2");
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  std::string self = "/proc/self/exe";
  std::vector<std::string> words = arguments;
  std::vector<char*> argv{self.data()};
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  if (::posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, argv.data(), environ) != 0) {
    give_up("posix_spawn");
  }
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(in[0]);
  ::close(out[1]);
  to_ = in[1];
  from_ = out[0];
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      to_(std::exchange(other.to_, -1)),
      from_(std::exchange(other.from_, -1)),
      unread_(std::move(other.unread_)) {}

Child::~Child() {
  if (pid_ < 0) return;
  ::close(to_);
  ::close(from_);
  int status = 0;
  ::waitpid(pid_, &status, 0);
}

std::string Child::line() {
  std::array<char, 4096> buffer{};
  for (;;) {
    const auto end = unread_.find('\n');
    if (end != std::string::npos) {
      std::string found = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return found;
    }
    const ssize_t count = ::read(from_, buffer.data(), buffer.size());
    if (count <= 0) give_up("a child of the benchmark ended early");
    unread_.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

void Child::go() const {
  if (::write(to_, "g", 1) != 1) give_up("a child of the benchmark is gone");
}

void ready_and_wait() {
  fmt::print("ready\n");
  std::fflush(stdout);
  char byte = 0;
  if (::read(STDIN_FILENO, &byte, 1) != 1) std::exit(0);
}

std::uint64_t median(std::vector<std::uint64_t> ns) {
  std::ranges::sort(ns);
  return ns.empty() ? 0 : ns[ns.size() / 2];
}

std::string spread(std::vector<std::uint64_t> ns) {
  std::ranges::sort(ns);
  if (ns.empty()) return "-";
  const auto ms = [](std::uint64_t value) { return static_cast<double>(value) / 1e6; };
  return fmt::format("{:.2f} ms ({:.2f} to {:.2f})", ms(median(ns)), ms(ns.front()), ms(ns.back()));
}

}  // namespace bench
