// Loading a checkpoint into GPU memory, hot, from the call to published, without digests and with
// them; then comparing it with the files again (verify). Against what this machine's link can do,
// both ways, in the same run.
//
//   gpu_load SOCKET ROUNDS CHECKPOINT...
//
// The process has a CUDA context before the clock starts. Each round evicts what the last one
// loaded.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/core.h>

#include "weightcache/weightcache.hpp"

#include "memory/cuda/cuda_device.hpp"
#include "memory/cuda/gpu.hpp"
#include "memory/cuda/handles.hpp"

namespace {

namespace cuda = wc::memory::cuda;
using Clock = std::chrono::steady_clock;

template <typename T>
T must(wc::Result<T> result) {
  if (!result) {
    fmt::print(stderr, "gpu_load: {}\n", result.error().message);
    std::exit(1);
  }
  return std::move(*result);
}

double gb_per_s(std::uint64_t bytes, std::chrono::nanoseconds time) {
  return static_cast<double>(bytes) / static_cast<double>(time.count());
}

struct Gpu {
  std::shared_ptr<const cuda::Driver> driver;
  cuda::Gpu gpu;
  cuda::PrimaryContext context;

  static Gpu open() {
    auto driver = std::make_shared<const cuda::Driver>(must(cuda::open_driver()));
    cuda::Gpu gpu = must(cuda::find_gpu(*driver, "0"));
    cuda::PrimaryContext context = must(cuda::retain_context(*driver, gpu.device));
    return {std::move(driver), std::move(gpu), std::move(context)};
  }
  [[nodiscard]] std::uint64_t free_bytes() const {
    const auto current = must(cuda::CurrentContext::push(*driver, context));
    std::size_t free = 0;
    std::size_t total = 0;
    (void)driver->cuMemGetInfo(&free, &total);
    return free;
  }
};

struct Link {
  double to_device = 0;
  double to_host = 0;
};

// The ceiling: pinned memory to the device and back in one stream, blocks of 64 MiB.
Link link_ceiling(const Gpu& gpu) {
  const cuda::Driver& driver = *gpu.driver;
  const auto current = must(cuda::CurrentContext::push(driver, gpu.context));
  const auto device = must(cuda::open_cuda_device(gpu.driver, "0"));
  constexpr std::size_t kBlock = std::size_t{64} << 20;
  const auto segment = must(device->create(kBlock));
  const auto view = must(device->map(*segment));
  const auto pinned = must(cuda::allocate_pinned(driver, kBlock));
  const auto stream = must(cuda::create_stream(driver));
  const auto measure = [&](auto copy) {
    double best = 0;
    for (int round = 0; round < 3; ++round) {
      constexpr int kCopies = 64;
      const auto start = Clock::now();
      for (int n = 0; n < kCopies; ++n) copy();
      (void)driver.cuStreamSynchronize(stream.get());
      best = std::max(best, gb_per_s(kCopies * kBlock, Clock::now() - start));
    }
    return best;
  };
  std::byte* const host = pinned.get().data();
  const auto there = view->address();
  return {measure([&] { (void)driver.cuMemcpyHtoDAsync(there, host, kBlock, stream.get()); }),
          measure([&] { (void)driver.cuMemcpyDtoHAsync(host, there, kBlock, stream.get()); })};
}

// The least free memory of the GPU while it lives: what a second copy would cost.
class Watch {
 public:
  explicit Watch(const Gpu& gpu) : before_(gpu.free_bytes()), least_(before_) {
    thread_ = std::jthread([this, &gpu](const std::stop_token& stop) {
      while (!stop.stop_requested()) least_ = std::min(least_, gpu.free_bytes());
    });
  }
  [[nodiscard]] std::uint64_t taken_bytes() {
    thread_.request_stop();
    thread_.join();
    return before_ - least_;
  }

 private:
  std::uint64_t before_;
  std::uint64_t least_;
  std::jthread thread_;
};

// The next round does not share the machine with the last one's clean-up.
void wait_until_given_back(weightcache::Connection& connection) {
  const auto busy = [](const weightcache::Status::Device& device) {
    return device.releasing_bytes > 0;
  };
  while (std::ranges::any_of(connection.status().devices, busy)) std::this_thread::yield();
}

void verify_one(weightcache::Connection& connection, const Gpu& gpu, const std::string& path,
                int rounds) {
  double best = 0;
  std::string line;
  std::uint64_t bytes = 0;
  std::uint64_t taken = 0;
  for (int round = 0; round < rounds; ++round) {
    // Asking for free memory all the time slows copies down: the first round alone is watched.
    std::optional<Watch> watch;
    if (round == 0) watch.emplace(gpu);
    const auto start = Clock::now();
    const auto verified = connection.verify("bench-load");
    const auto took = Clock::now() - start;
    if (watch) taken = watch->taken_bytes();
    if (!verified.mismatches.empty()) {
      fmt::print(stderr, "gpu_load: \"{}\" differs from what was loaded\n", path);
      std::exit(1);
    }
    bytes = verified.bytes;
    if (round > 0) best = std::max(best, gb_per_s(bytes, took));
    line += fmt::format(" {:.1f}", gb_per_s(bytes, took));
  }
  fmt::print("{:<44} {:<7} {:>6.1f} GB {:>8.1f} GB/s {:>10} MiB beside rounds:{}\n", path, "verify",
             static_cast<double>(bytes) / 1e9, best, taken >> 20, line);
}

void bench_one(weightcache::Connection& connection, const Gpu& gpu, const std::string& path,
               int rounds, bool digest) {
  double best = 0;
  double best_fill = 0;
  std::string line;
  std::uint64_t bytes = 0;
  for (int round = 0; round < rounds; ++round) {
    weightcache::LoadOptions options;
    options.device = "cuda:0";
    options.name = "bench-load";
    options.no_digest = !digest;
    const auto loaded = connection.load(path, options);
    if (loaded.outcome != WC_LOADED) {
      fmt::print(stderr, "gpu_load: \"{}\" was {}\n", path, loaded.outcome_name());
      std::exit(1);
    }
    bytes = loaded.read_bytes;
    best = std::max(best, gb_per_s(bytes, loaded.total));
    best_fill = std::max(best_fill, gb_per_s(bytes, loaded.fill));
    line += fmt::format(" {:.1f}", gb_per_s(bytes, loaded.total));
    if (round + 1 == rounds && digest) verify_one(connection, gpu, path, rounds);
    (void)connection.evict("bench-load", true);
    wait_until_given_back(connection);
  }
  fmt::print("{:<44} {:<7} {:>6.1f} GB {:>8.1f} GB/s {:>10.1f} GB/s   rounds:{}\n", path,
             digest ? "digest" : "none", static_cast<double>(bytes) / 1e9, best, best_fill, line);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    fmt::print(stderr, "usage: gpu_load SOCKET ROUNDS CHECKPOINT...\n");
    return 2;
  }
  try {
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    const Gpu gpu = Gpu::open();
    const Link link = link_ceiling(gpu);
    fmt::print("{}: pinned host to device: {:.1f} GB/s (the ceiling), and back: {:.1f}\n",
               gpu.gpu.name, link.to_device, link.to_host);
    weightcache::ConnectOptions options;
    options.socket = argv[1];
    weightcache::Connection connection(options);
    fmt::print("{:<44} {:<7} {:>9} {:>13} {:>15}\n", "checkpoint", "digest", "read", "whole load",
               "of it, filling");
    for (int at = 3; at < argc; ++at) {
      for (const bool digest : {false, true}) {
        bench_one(connection, gpu, argv[at], std::atoi(argv[2]), digest);
      }
    }
  } catch (const weightcache::error& failed) {
    fmt::print(stderr, "gpu_load: {}: {}\n", wc_error_name(failed.code()), failed.what());
    return 1;
  }
  return 0;
}
