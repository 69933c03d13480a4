// What 64 hostile connections take from 64 well-behaved readers.
//
//   hostile_bench [SECONDS]
//
// Readers are threads that attach and detach without a pause. Hostile ones are processes: a third
// sends garbage, a third asks and never reads, a third opens connections and closes them. They run
// twice: at the lowest priority, so that what they take is the daemon's time and not that of the
// processor, and at the readers' own priority, where the scheduler gives them half of the machine.
// With and without are measured in turns, and the medians compared.
#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/units.hpp"
#include "tests/support/daemon_fixture.hpp"
#include "tests/support/raw_publisher.hpp"

namespace {

using namespace std::chrono_literals;
using namespace wc;
using support::RawClient;
namespace fb = wire::fb;

using Clock = std::chrono::steady_clock;

constexpr unsigned kReaders = 64;
constexpr unsigned kHostile = 64;
constexpr int kRounds = 5;

void say(const std::string& line) { std::cout << line << std::endl; }

double pairs_per_s(const std::filesystem::path& socket, std::chrono::nanoseconds time) {
  std::atomic<std::uint64_t> pairs = 0;
  std::atomic<bool> failed = false;
  const auto until = Clock::now() + time;
  {
    std::vector<std::jthread> threads;
    for (unsigned count = 0; count < kReaders; ++count) {
      threads.emplace_back([&] {
        RawClient client(socket);
        if (!client.hello()) failed = true;
        while (!failed && Clock::now() < until) {
          std::vector<Fd> files;
          const auto attached = support::attach(client, "sample", &files);
          if (!attached || !support::detach(client, attached->lease)) failed = true;
          ++pairs;
        }
      });
    }
  }
  if (failed) say("a reader failed");
  return static_cast<double>(pairs) / std::chrono::duration<double>(time).count();
}

void send_garbage(const std::filesystem::path& socket, unsigned seed) {
  std::vector<std::byte> garbage(1 + seed * 997 % 60'000);
  std::uint32_t state = seed + 1;
  for (std::byte& byte : garbage)
    byte = std::byte((state = state * 1'664'525 + 1'013'904'223) >> 24);
  RawClient client(socket);
  for (int count = 0; count < 4; ++count) client.send_bytes(garbage);
  static_cast<void>(client.receive(10ms));
}

// Asks until the socket is full, and reads nothing; the daemon drops it in the end.
void stall(const std::filesystem::path& socket) {
  RawClient client(socket);
  static_cast<void>(client.hello());
  fb::AttachT attach;
  attach.selector = support::select("sample");
  while (client.send(attach) != 0) continue;
  ::poll(nullptr, 0, 500);
}

[[noreturn]] void attack(const std::filesystem::path& socket, unsigned index, int nice) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setpriority(PRIO_PROCESS, 0, nice);
  for (unsigned round = 0;; ++round) {
    if (index % 3 == 0) send_garbage(socket, index + round);
    if (index % 3 == 1) stall(socket);
    if (index % 3 == 2) RawClient(socket).disconnect();
  }
}

class Attackers {
 public:
  Attackers(const std::filesystem::path& socket, int nice) {
    for (unsigned index = 0; index < kHostile; ++index) {
      const pid_t child = ::fork();
      if (child == 0) attack(socket, index, nice);
      children_.push_back(child);
    }
  }
  Attackers(const Attackers&) = delete;
  Attackers& operator=(const Attackers&) = delete;
  ~Attackers() {
    for (const pid_t child : children_) ::kill(child, SIGKILL);
    for (const pid_t child : children_) ::waitpid(child, nullptr, 0);
  }

 private:
  std::vector<pid_t> children_;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void compare(const std::filesystem::path& socket, int nice, std::chrono::nanoseconds time) {
  std::vector<double> alone;
  std::vector<double> attacked;
  for (int round = 0; round < kRounds; ++round) {
    alone.push_back(pairs_per_s(socket, time));
    const Attackers attackers(socket, nice);
    ::poll(nullptr, 0, 200);
    attacked.push_back(pairs_per_s(socket, time));
  }
  say(format("hostile ones at nice {}: {:.0f} attach+detach a second, {:.0f} without: ratio {:.2f}",
             nice, median(attacked), median(alone), median(attacked) / median(alone)));
}

int measure(std::chrono::seconds time) {
  const support::TempFolder folder;
  support::DaemonOptions options;
  options.socket = folder.path() / "run" / "socket";
  options.log = folder.path() / "log";
  const support::DaemonProcess daemon(options);
  RawClient client(options.socket);
  if (!daemon.ready() || !client.hello()) return 1;
  support::PublishedSample sample;
  sample.content.segments = {512'000};
  sample.content.tensors_per_segment = 1'000;
  if (!support::RawPublisher(client, sample).run()) return 1;
  compare(options.socket, 19, time);
  compare(options.socket, 0, time);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  int seconds = 3;
  if (count > 1) {
    const std::string_view text = arguments[1];
    std::from_chars(text.data(), text.data() + text.size(), seconds);
  }
  return measure(std::chrono::seconds(seconds));
}
