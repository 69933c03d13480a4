// What attaching costs, beside the floor of the same run: a socket's round trip with two
// descriptors and the mapping of both. Starts a daemon of its own.
//
//   attach_bench [GIB]     size of the large entry; without, 8 or a quarter of the free memory
//
// Each line: what, measured, the target, the floor where there is one, and whether the target
// holds.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "weightcache/weightcache.hpp"

#include "base/mapping.hpp"
#include "base/units.hpp"
#include "bench/attach_floor.hpp"
#include "tests/support/daemon_fixture.hpp"
#include "tests/support/make_checkpoint.hpp"
#include "tests/support/temp_folder.hpp"

namespace wc::bench {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;
using weightcache::Connection;

constexpr std::size_t kTensors = 36'000;

class Bench {
 public:
  Bench() {
    support::DaemonOptions options;
    options.socket = folder_ / "run/socket";
    options.log = folder_ / "log";
    daemon_.emplace(options);
    if (!daemon_->ready()) {
      std::cerr << "the daemon did not start: see " << options.log << "\n";
      std::exit(1);
    }
    connect_options_.socket = options.socket.string();
    std::cout << std::left << std::setw(62) << "what" << std::setw(16) << "measured"
              << std::setw(18) << "target" << std::setw(16) << "floor" << "\n";
  }

  [[nodiscard]] Connection connect() const { return Connection(connect_options_); }
  [[nodiscard]] const support::TempFolder& folder() const { return folder_; }
  [[nodiscard]] pid_t daemon() const { return daemon_->pid(); }
  [[nodiscard]] pid_t helper() const { return daemon_->helper(); }

  struct Line {
    std::string what, measured, target, floor;
    bool holds = true;
  };
  void print(const Line& line) {
    all_hold_ = all_hold_ && line.holds;
    std::cout << std::left << std::setw(62) << line.what << std::setw(16) << line.measured
              << std::setw(18) << line.target << std::setw(16) << line.floor
              << (line.holds ? "ok" : "MISSED") << std::endl;
  }
  [[nodiscard]] bool all_hold() const { return all_hold_; }

 private:
  support::TempFolder folder_;
  std::optional<support::DaemonProcess> daemon_;
  weightcache::ConnectOptions connect_options_;
  bool all_hold_ = true;
};

nanoseconds median_of(std::size_t runs, const std::function<nanoseconds()>& run) {
  std::vector<nanoseconds> times;
  for (std::size_t i = 0; i < runs; ++i) times.push_back(run());
  std::ranges::sort(times);
  return times[runs / 2];
}

nanoseconds time_of(const std::function<void()>& body) {
  const auto start = Clock::now();
  body();
  return Clock::now() - start;
}

struct EntryShape {
  std::size_t tensors = kTensors;
  std::uint64_t bytes = kMiB;
};

// Tensors of names as models have them, spread over one segment.
void publish(Connection& connection, const std::string& name, const EntryShape& shape) {
  weightcache::PublishOptions options;
  options.name = name;
  options.fingerprint = R"({"source": {"source_id": ")" + name + R"("}})";
  auto publication = connection.publish(options);
  if (!publication) return;
  const auto segment = publication->reserve(shape.bytes);
  weightcache::TensorDescription tensor;
  tensor.dtype = WC_BF16;
  tensor.shape = {16, 16};
  tensor.segment = segment.segment;
  const std::uint64_t places = shape.bytes / 512;
  for (std::size_t i = 0; i < shape.tensors; ++i) {
    tensor.name = "model.layers." + std::to_string(i / 400) + ".mlp.experts." +
                  std::to_string(i % 400) + ".gate_up_proj.weight";
    tensor.offset = (i * 7919 % places) * 512;
    publication->tensor(tensor);
  }
  publication->publish();
}

// From nothing to the address of every tensor; giving it all back is not part of it.
nanoseconds attach_all(const Bench& bench, const std::string& name, std::vector<wc_tensor>& out) {
  const auto start = Clock::now();
  Connection connection = bench.connect();
  const weightcache::Attachment weights = connection.attach(name);
  out[0].struct_size = sizeof(wc_tensor);
  if (wc_attachment_tensors(weights.get(), 0, weights.size(), out.data()) != WC_OK) std::abort();
  return Clock::now() - start;
}

nanoseconds attach_time(const Bench& bench, const std::string& name) {
  std::vector<wc_tensor> tensors(kTensors);
  return median_of(101, [&] { return attach_all(bench, name, tensors); });
}

std::string text_of(nanoseconds time) { return format_duration(time); }

void measure_attach(Bench& bench, std::uint64_t large_bytes) {
  Connection connection = bench.connect();
  publish(connection, "small", {kTensors, kMiB});
  publish(connection, "large", {kTensors, large_bytes});
  publish(connection, "few", {1000, kMiB});
  const nanoseconds floor = round_trip_floor(101);
  for (const std::string& name : {std::string("small"), std::string("large")}) {
    const std::uint64_t bytes = connection.list(name).at(0).bytes;
    const nanoseconds time = attach_time(bench, name);
    bench.print({"connect, attach, every address of " + format_count(kTensors) + " tensors, " +
                     format_bytes(bytes),
                 text_of(time), "<= 1 ms", text_of(floor), time <= std::chrono::milliseconds(1)});
  }
  const double extra =
      static_cast<double>((attach_time(bench, "small") - attach_time(bench, "few")).count());
  const double each = extra / static_cast<double>(kTensors - 1000);
  bench.print(
      {"of that, for each further tensor", format("{:.1f} ns", each), "<= 20 ns", "", each <= 20});
  connection.evict("large");
}

void measure_resident_load(Bench& bench) {
  std::vector<support::MadeShard> shards;
  for (unsigned n = 1; n <= 30; ++n) {
    support::MadeShard shard = {.name = format("model-{:05}-of-00030.safetensors", n),
                                .tensors = {}};
    for (unsigned i = 0; i < 100; ++i)
      shard.tensors.push_back(support::made_tensor(format("t{}.{}", n, i), 1024));
    shards.push_back(std::move(shard));
  }
  const std::string path = support::write_checkpoint(bench.folder().path() / "thirty", shards);
  Connection connection = bench.connect();
  connection.load(path);
  const auto look = [&] {
    for (const auto& shard : shards) {
      struct stat status{};
      if (::stat((path + "/" + shard.name).c_str(), &status) != 0) std::abort();
    }
  };
  const auto load = [&] {
    if (bench.connect().load(path).outcome != WC_ALREADY_RESIDENT) std::abort();
  };
  const nanoseconds floor = median_of(101, [&] { return time_of(look); });
  const nanoseconds time = median_of(101, [&] { return time_of(load); });
  bench.print({"connect, load of an unchanged checkpoint of 30 shards", text_of(time), "<= 5 ms",
               text_of(floor) + " (stat)", time <= std::chrono::milliseconds(5)});
}

// Readers in processes of their own, each with its connection, for two seconds.
void measure_throughput(Bench& bench) {
  constexpr int kReaders = 64;
  constexpr auto kTime = std::chrono::seconds(2);
  const Mapping counts = *Mapping::map(
      FdView(),
      {.bytes = 4096, .protection = PROT_READ | PROT_WRITE, .flags = MAP_SHARED | MAP_ANONYMOUS});
  auto* count = reinterpret_cast<std::uint64_t*>(counts.data());
  const auto start = Clock::now() + std::chrono::milliseconds(500);
  std::vector<pid_t> children;
  for (int i = 0; i < kReaders; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      Connection connection = bench.connect();
      while (Clock::now() < start) ::poll(nullptr, 0, 1);
      while (Clock::now() < start + kTime) {
        (void)connection.attach("few");
        ++count[i];
      }
      ::_exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) ::waitpid(child, nullptr, 0);
  std::uint64_t total = 0;
  for (int i = 0; i < kReaders; ++i) total += count[i];
  const double rate = static_cast<double>(total) / 2.0;
  bench.print({"attach and detach, 64 readers at once, 1,000 tensors",
               format_count(static_cast<std::uint64_t>(rate)) + "/s", ">= 5,000/s", "",
               rate >= 5000});
}

std::uint64_t status_number(pid_t pid, const std::string& key) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key + ":")) continue;
    std::istringstream fields(line.substr(key.size() + 1));
    std::uint64_t number = 0;
    fields >> number;
    return number;
  }
  return 0;
}

void measure_daemon(Bench& bench) {
  constexpr int kEntries = 100;
  {
    Connection connection = bench.connect();
    for (int i = 0; i < kEntries; ++i)
      publish(connection, "entry-" + std::to_string(i), {kTensors, kMiB});
  }
  const std::uint64_t anonymous = status_number(bench.daemon(), "RssAnon") * 1024;
  bench.print({format("the daemon's own memory, {} entries of {} tensors", kEntries,
                      format_count(kTensors)),
               format_bytes(anonymous), "<= 10 MiB", "", anonymous <= 10 * kMiB});
  ::poll(nullptr, 0, 1000);
  const auto wakes = [&] {
    return status_number(bench.daemon(), "voluntary_ctxt_switches") +
           status_number(bench.helper(), "voluntary_ctxt_switches");
  };
  const std::uint64_t before = wakes();
  ::poll(nullptr, 0, 5000);
  const std::uint64_t count = wakes() - before;
  bench.print({"wake-ups of the idle daemon and its helper in 5 s", format_count(count), "0", "",
               count == 0});
}

std::uint64_t large_bytes(const std::vector<std::string>& arguments) {
  if (!arguments.empty()) return std::stoull(arguments[0]) * kGiB;
  const auto pages = static_cast<std::uint64_t>(::sysconf(_SC_AVPHYS_PAGES));
  const std::uint64_t quarter = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) / 4;
  return std::clamp(quarter / kGiB, std::uint64_t{1}, std::uint64_t{8}) * kGiB;
}

}  // namespace
}  // namespace wc::bench

int main(int count, char** values) {
  try {
    wc::bench::Bench bench;
    wc::bench::measure_attach(bench, wc::bench::large_bytes({values + 1, values + count}));
    wc::bench::measure_resident_load(bench);
    wc::bench::measure_throughput(bench);
    wc::bench::measure_daemon(bench);
    return bench.all_hold() ? 0 : 1;
  } catch (const weightcache::error& failure) {
    std::cerr << failure.code_name() << ": " << failure.what() << "\n";
    return 1;
  }
}
