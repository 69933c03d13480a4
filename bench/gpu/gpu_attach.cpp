// Attaching GPU memory: an entry of 64 GiB in 36,000 tensors, against the bare driver calls that
// any attach must make (import, reserve, map, set access) on as much memory, in the same run.
//
//   gpu_attach SOCKET [GIB [TENSORS [READERS [STORM]]]]
//
// Needs a daemon at SOCKET and twice GIB free on the GPU. A reader has a CUDA context, as an engine
// has, before the clock starts.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <fcntl.h>
#include <fmt/core.h>

#include "weightcache/weightcache.hpp"

#include "child.hpp"
#include "memory/cuda/cuda_device.hpp"
#include "memory/cuda/gpu.hpp"
#include "memory/cuda/handles.hpp"
#include "memory/cuda/vmm.hpp"

namespace {

namespace cuda = wc::memory::cuda;
using Clock = std::chrono::steady_clock;

constexpr const char* kName = "bench-attach";

std::uint64_t ns_since(Clock::time_point start) {
  return static_cast<std::uint64_t>((Clock::now() - start).count());
}

template <typename T>
T must(wc::Result<T> result) {
  if (!result) {
    fmt::print(stderr, "gpu_attach: {}\n", result.error().message);
    std::exit(1);
  }
  return std::move(*result);
}

// A context like an engine's, held for the process's life.
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
};

struct Times {
  std::uint64_t attach_ns = 0;
  std::uint64_t detach_ns = 0;
};

// From the connection to the address of every tensor.
Times attach_once(const std::string& socket) {
  Times times;
  const auto start = Clock::now();
  weightcache::ConnectOptions options;
  options.socket = socket;
  weightcache::Connection connection(options);
  weightcache::Attachment weights = connection.attach(kName);
  std::uintptr_t all = 0;
  for (const weightcache::Tensor& tensor : weights) {
    all ^= reinterpret_cast<std::uintptr_t>(tensor.data);
  }
  times.attach_ns = ns_since(start);
  if (all == 1) std::exit(2);  // looked at, so that it is not left out
  const auto end = Clock::now();
  weights.detach();
  times.detach_ns = ns_since(end);
  return times;
}

Times bare_once(const Gpu& gpu, int fd, std::size_t bytes) {
  Times times;
  const auto start = Clock::now();
  auto memory = must(cuda::import_memory(*gpu.driver, wc::FdView(fd)));
  auto range = must(cuda::reserve_range(*gpu.driver, bytes, 0));
  auto mapped = must(cuda::map_memory(*gpu.driver, range, memory, bytes));
  if (!cuda::set_access(*gpu.driver, mapped.get(), gpu.gpu.device, cuda::kAccessRead)) {
    std::exit(1);
  }
  times.attach_ns = ns_since(start);
  const auto end = Clock::now();
  mapped.reset();
  range.reset();
  memory.reset();
  times.detach_ns = ns_since(end);
  return times;
}

// Roles: `ours SOCKET` and `bare FD BYTES`. Each answers every go with "attach detach" in ns.
int run_reader(int argc, char** argv) {
  const std::string role = argv[1];
  const Gpu gpu = Gpu::open();
  if (role == "ours" && argc == 3) {
    (void)attach_once(argv[2]);  // the library opens its driver once for a process
  }
  for (;;) {
    bench::ready_and_wait();
    const Times times = role == "ours" ? attach_once(argv[2])
                                       : bare_once(gpu, std::atoi(argv[2]), std::stoull(argv[3]));
    fmt::print("{} {}\n", times.attach_ns, times.detach_ns);
    std::fflush(stdout);
  }
}

Times times_in(const std::string& line) {
  const auto space = line.find(' ');
  return {std::stoull(line.substr(0, space)), std::stoull(line.substr(space + 1))};
}

struct Figures {
  std::vector<std::uint64_t> attach, detach, last;  // `last`: the slowest of each round
};

// Rounds in which `readers` processes attach at the same moment.
Figures measure(const std::vector<std::string>& role, unsigned readers, unsigned rounds) {
  std::vector<bench::Child> children;
  for (unsigned reader = 0; reader < readers; ++reader) children.emplace_back(role);
  Figures figures;
  for (unsigned round = 0; round < rounds; ++round) {
    for (bench::Child& child : children) (void)child.line();
    for (const bench::Child& child : children) child.go();
    std::uint64_t last = 0;
    for (bench::Child& child : children) {
      const Times times = times_in(child.line());
      figures.attach.push_back(times.attach_ns);
      figures.detach.push_back(times.detach_ns);
      last = std::max(last, times.attach_ns);
    }
    figures.last.push_back(last);
  }
  return figures;
}

void publish(const std::string& socket, std::uint64_t bytes, unsigned tensors) {
  weightcache::ConnectOptions where;
  where.socket = socket;
  weightcache::Connection connection(where);
  weightcache::PublishOptions options;
  options.name = kName;
  options.device = "cuda:0";
  options.replace = true;
  options.fingerprint =
      fmt::format(R"({{"form":"raw","partition":{{}},"source":{{"source_id":"bench {} {}"}}}})",
                  bytes, tensors);
  auto publication = connection.publish(options);
  if (!publication) return;
  const auto segment = publication->reserve(bytes);
  const std::uint64_t each = bytes / tensors / 512 * 512;
  for (unsigned n = 0; n < tensors; ++n) {
    weightcache::TensorDescription tensor;
    tensor.name = fmt::format("model.layers.{}.mlp.experts.{}.down_proj.weight", n / 128, n % 128);
    tensor.dtype = WC_BF16;
    tensor.shape = {static_cast<std::int64_t>(each / 512), 256};
    tensor.segment = segment.segment;
    tensor.offset = n * each;
    publication->tensor(tensor);
  }
  (void)publication->publish();
}

struct Footprint {
  std::uint64_t address_space_kib = 0;
  std::uint64_t resident_kib = 0;
  std::size_t descriptors = 0;
};

Footprint footprint() {
  Footprint out;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmSize:")) out.address_space_kib = std::stoull(line.substr(7));
    if (line.starts_with("VmRSS:")) out.resident_kib = std::stoull(line.substr(6));
  }
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    (void)entry;
    ++out.descriptors;
  }
  return out;
}

void storm(const std::string& socket, unsigned count) {
  const Gpu gpu = Gpu::open();
  for (int warm = 0; warm < 100; ++warm) (void)attach_once(socket);
  const Footprint before = footprint();
  for (unsigned n = 0; n < count; ++n) (void)attach_once(socket);
  const Footprint after = footprint();
  fmt::print(
      "{} times attached and detached: address space {:+} KiB, resident {:+} KiB, "
      "descriptors {:+}\n",
      count, static_cast<std::int64_t>(after.address_space_kib - before.address_space_kib),
      static_cast<std::int64_t>(after.resident_kib - before.resident_kib),
      static_cast<std::int64_t>(after.descriptors - before.descriptors));
}

void row(const char* what, const std::vector<std::uint64_t>& ours,
         const std::vector<std::uint64_t>& bare) {
  fmt::print("{:<34} {:>32} {:>32} {:>6.2f}\n", what, bench::spread(ours), bench::spread(bare),
             static_cast<double>(bench::median(ours)) / static_cast<double>(bench::median(bare)));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2 && (std::string(argv[1]) == "ours" || std::string(argv[1]) == "bare")) {
    return run_reader(argc, argv);
  }
  if (argc < 2) {
    fmt::print(stderr, "usage: gpu_attach SOCKET [GIB [TENSORS [READERS [STORM]]]]\n");
    return 2;
  }
  const std::string socket = argv[1];
  const std::uint64_t bytes = std::stoull(argc > 2 ? argv[2] : "64") << 30;
  const auto tensors = static_cast<unsigned>(std::stoul(argc > 3 ? argv[3] : "36000"));
  const auto readers = static_cast<unsigned>(std::stoul(argc > 4 ? argv[4] : "8"));
  const auto count = static_cast<unsigned>(std::stoul(argc > 5 ? argv[5] : "10000"));
  try {
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    publish(socket, bytes, tensors);
    // The floor's own memory; only its descriptor stays, as with the daemon.
    const std::string held = [bytes] {
      const Gpu gpu = Gpu::open();
      const auto recipe = must(cuda::find_recipe(*gpu.driver, gpu.gpu));
      const auto memory = must(cuda::create_memory(*gpu.driver, bytes, recipe.prop));
      const int fd = must(cuda::export_memory(*gpu.driver, memory)).release();
      ::fcntl(fd, F_SETFD, 0);
      return std::to_string(fd);
    }();
    const std::vector<std::string> ours{"ours", socket};
    const std::vector<std::string> bare{"bare", held, std::to_string(bytes)};
    fmt::print("{} GiB in one segment, {} tensors; median (least to most)\n", bytes >> 30, tensors);
    fmt::print("{:<34} {:>32} {:>32} {:>6}\n", "", "weightcache", "bare driver calls", "ratio");
    const Figures one = measure(ours, 1, 20);
    const Figures one_bare = measure(bare, 1, 20);
    row("attach: connect to addresses", one.attach, one_bare.attach);
    row("detach", one.detach, one_bare.detach);
    const Figures many = measure(ours, readers, 10);
    const Figures many_bare = measure(bare, readers, 10);
    row(fmt::format("{} processes at once: the last", readers).c_str(), many.last, many_bare.last);
    storm(socket, count);
  } catch (const weightcache::error& failed) {
    fmt::print(stderr, "gpu_attach: {}: {}\n", wc_error_name(failed.code()), failed.what());
    return 1;
  }
  return 0;
}
