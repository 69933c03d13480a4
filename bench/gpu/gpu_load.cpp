// Loading a checkpoint into GPU memory, hot, from the call to published, against what this
// machine's link can do (pinned host to device) in the same run.
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

// The ceiling: pinned memory to the device in one stream, blocks of 64 MiB.
double link_ceiling() {
  auto driver = must(cuda::open_driver());
  const auto gpu = must(cuda::find_gpu(driver, "0"));
  const auto context = must(cuda::retain_context(driver, gpu.device));
  const auto current = must(cuda::CurrentContext::push(driver, context));
  auto device = must(
      cuda::open_cuda_device(std::make_shared<const cuda::Driver>(must(cuda::open_driver())), "0"));
  constexpr std::size_t kBlock = std::size_t{64} << 20;
  const auto segment = must(device->create(kBlock));
  const auto view = must(device->map(*segment));
  const auto pinned = must(cuda::allocate_pinned(driver, kBlock));
  const auto stream = must(cuda::create_stream(driver));
  double best = 0;
  for (int round = 0; round < 3; ++round) {
    constexpr int kCopies = 64;
    const auto start = Clock::now();
    for (int copy = 0; copy < kCopies; ++copy) {
      (void)driver.cuMemcpyHtoDAsync(view->address(), pinned.get().data(), kBlock, stream.get());
    }
    (void)driver.cuStreamSynchronize(stream.get());
    best = std::max(best, gb_per_s(kCopies * kBlock, Clock::now() - start));
  }
  return best;
}

// The next round does not share the machine with the last one's clean-up.
void wait_until_given_back(weightcache::Connection& connection) {
  const auto busy = [](const weightcache::Status::Device& device) {
    return device.releasing_bytes > 0;
  };
  while (std::ranges::any_of(connection.status().devices, busy)) std::this_thread::yield();
}

void bench_one(weightcache::Connection& connection, const std::string& path, int rounds,
               bool digest) {
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
    auto driver = must(cuda::open_driver());
    const auto gpu = must(cuda::find_gpu(driver, "0"));
    const auto context = must(cuda::retain_context(driver, gpu.device));
    fmt::print("{}: pinned host to device: {:.1f} GB/s (the ceiling)\n", gpu.name, link_ceiling());
    weightcache::ConnectOptions options;
    options.socket = argv[1];
    weightcache::Connection connection(options);
    fmt::print("{:<44} {:<7} {:>9} {:>13} {:>15}\n", "checkpoint", "digest", "read", "whole load",
               "of it, filling");
    for (int at = 3; at < argc; ++at) {
      for (const bool digest : {false, true}) {
        bench_one(connection, argv[at], std::atoi(argv[2]), digest);
      }
    }
  } catch (const weightcache::error& failed) {
    fmt::print(stderr, "gpu_load: {}: {}\n", wc_error_name(failed.code()), failed.what());
    return 1;
  }
  return 0;
}
