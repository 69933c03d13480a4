// What a hot load could be at best, and what each part of it costs: files read by threads into
// small pinned rings, and from there to the GPU, with everything that a load does beside left out.
//
//   gpu_probe [SWITCH...] FILE...
//
//   --threads=N     that read (15)          --chunk-kib=N  read, and digested, at a time (1024)
//   --block-kib=N   of a ring's half (4096) --rounds=N     over all files (3)
//   --hash          digest what was read    --no-gpu       reading alone, into ordinary memory
//   --touch         before the first round, read one byte of each page
//   --mapped        copy out of a mapping that is advised to be sequential
//   --direct        open with O_DIRECT
//
// Each round says how fast it was, the processor's time, and how many pages the kernel moved to its
// list of active ones: it does so when a page in memory is read for the first or second time, under
// a lock that all threads want.
#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.hpp"
#include "base/mapping.hpp"
#include "load/block_hash.hpp"
#include "memory/cuda/cuda_device.hpp"
#include "memory/cuda/gpu.hpp"
#include "memory/cuda/handles.hpp"

namespace {

namespace cuda = wc::memory::cuda;
using Clock = std::chrono::steady_clock;

struct Switches {
  unsigned threads = 15;
  std::size_t block = std::size_t{4096} << 10;
  std::size_t chunk = std::size_t{1024} << 10;
  int rounds = 3;
  bool hash = false;
  bool gpu = true;
  bool touch = false;
  bool mapped = false;
  bool direct = false;
  std::vector<std::string> files;
};

struct Block {
  std::size_t file = 0;
  std::size_t offset = 0;
  std::size_t bytes = 0;
  std::size_t place = 0;  // in the segment
};

struct File {
  wc::Fd fd;
  std::size_t bytes = 0;
  wc::Mapping mapping;  // only with --mapped
};

[[noreturn]] void give_up(const std::string& why) {
  fmt::print(stderr, "gpu_probe: {}\n", why);
  std::exit(1);
}

template <typename T>
T must(wc::Result<T> result) {
  if (!result) give_up(result.error().message);
  return std::move(*result);
}

void must_do(const wc::Result<>& result) {
  if (!result) give_up(result.error().message);
}

std::size_t number_in(const std::string& word) {
  std::size_t number = 0;
  const char* const end = word.data() + word.size();
  const auto [rest, code] = std::from_chars(word.data() + word.find('=') + 1, end, number);
  if (code != std::errc{} || rest != end || number == 0) give_up("no number in " + word);
  return number;
}

Switches switches_of(int argc, char** argv) {
  Switches out;
  for (int at = 1; at < argc; ++at) {
    const std::string word = argv[at];
    const std::string name = word.substr(0, word.find('='));
    if (name == "--threads") out.threads = static_cast<unsigned>(number_in(word));
    if (name == "--block-kib") out.block = number_in(word) << 10;
    if (name == "--chunk-kib") out.chunk = number_in(word) << 10;
    if (name == "--rounds") out.rounds = static_cast<int>(number_in(word));
    if (name == "--hash") out.hash = true;
    if (name == "--no-gpu") out.gpu = false;
    if (name == "--touch") out.touch = true;
    if (name == "--mapped") out.mapped = true;
    if (name == "--direct") out.direct = true;
    if (!word.starts_with("--")) out.files.push_back(word);
  }
  if (out.files.empty()) give_up("which files? (the source tells the switches)");
  out.chunk = std::min(out.chunk, out.block);
  return out;
}

std::vector<File> open_files(const Switches& switches) {
  std::vector<File> files;
  for (const std::string& path : switches.files) {
    File file;
    file.fd = wc::Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | (switches.direct ? O_DIRECT : 0)));
    struct stat status{};
    if (!file.fd || ::fstat(file.fd.get(), &status) != 0) give_up("cannot open " + path);
    file.bytes = static_cast<std::size_t>(status.st_size);
    if (switches.direct) file.bytes = file.bytes / 4096 * 4096;
    if (switches.mapped) {
      file.mapping = must(wc::Mapping::map(
          file.fd, {.bytes = file.bytes, .protection = PROT_READ, .flags = MAP_SHARED}));
      (void)::madvise(file.mapping.data(), file.bytes, MADV_SEQUENTIAL);
    }
    files.push_back(std::move(file));
  }
  return files;
}

std::vector<Block> blocks_of(const std::vector<File>& files, std::size_t bytes) {
  std::vector<Block> blocks;
  std::size_t place = 0;
  for (std::size_t file = 0; file < files.size(); ++file) {
    for (std::size_t at = 0; at < files[file].bytes; at += bytes, place += bytes) {
      blocks.push_back({file, at, std::min(bytes, files[file].bytes - at), place});
    }
  }
  return blocks;
}

// The GPU, and memory on it for everything.
struct Target {
  std::shared_ptr<const cuda::Driver> driver;
  cuda::PrimaryContext context;
  std::unique_ptr<wc::memory::Device> device;
  std::unique_ptr<wc::memory::Segment> segment;
  std::unique_ptr<wc::memory::View> view;

  static Target of(std::size_t bytes) {
    Target out;
    out.driver = std::make_shared<const cuda::Driver>(must(cuda::open_driver()));
    out.context =
        must(cuda::retain_context(*out.driver, must(cuda::find_gpu(*out.driver, "0")).device));
    out.device = must(cuda::open_cuda_device(out.driver, "0"));
    out.segment = must(out.device->create(bytes));
    out.view = must(out.device->map(*out.segment));
    return out;
  }
};

// One thread's ring: two blocks, pinned where a GPU reads them.
class Ring {
 public:
  Ring(const Target* target, std::size_t bytes) : target_(target) {
    if (target == nullptr) {
      for (wc::Mapping& plain : plain_) {
        plain = must(wc::Mapping::map(wc::FdView(), {.bytes = bytes,
                                                     .protection = PROT_READ | PROT_WRITE,
                                                     .flags = MAP_PRIVATE | MAP_ANONYMOUS}));
        std::memset(plain.data(), 0, bytes);
      }
      return;
    }
    current_.emplace(must(cuda::CurrentContext::push(*target->driver, target->context)));
    stream_ = must(cuda::create_stream(*target->driver));
    for (std::size_t n = 0; n < pinned_.size(); ++n) {
      pinned_.at(n) = must(cuda::allocate_pinned(*target->driver, bytes));
      events_.at(n) = must(cuda::create_event(*target->driver));
    }
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  Ring(Ring&&) = delete;
  Ring& operator=(Ring&&) = delete;
  ~Ring() { finish(); }

  std::byte* next() {
    at_ = 1 - at_;
    if (target_ == nullptr) return static_cast<std::byte*>(plain_.at(at_).data());
    if (in_flight_.at(at_)) (void)target_->driver->cuEventSynchronize(events_.at(at_).get());
    return pinned_.at(at_).get().data();
  }
  void send(const Block& block) {
    if (target_ == nullptr) return;
    const cuda::Driver& driver = *target_->driver;
    must_do(WC_CU_CALL(driver, cuMemcpyHtoDAsync, target_->view->address() + block.place,
                       pinned_.at(at_).get().data(), block.bytes, stream_.get()));
    must_do(WC_CU_CALL(driver, cuEventRecord, events_.at(at_).get(), stream_.get()));
    in_flight_.at(at_) = true;
  }
  void finish() {
    if (target_ != nullptr) (void)target_->driver->cuStreamSynchronize(stream_.get());
  }

 private:
  const Target* target_;
  std::optional<cuda::CurrentContext> current_;  // goes last
  cuda::Stream stream_;
  std::array<cuda::PinnedBuffer, 2> pinned_;
  std::array<cuda::Event, 2> events_;
  std::array<wc::Mapping, 2> plain_;
  std::array<bool, 2> in_flight_{};
  std::size_t at_ = 0;
};

void read_chunk(const File& file, const Switches& switches, std::size_t offset,
                std::span<std::byte> to) {
  if (switches.mapped) {
    std::memcpy(to.data(), file.mapping.data() + offset, to.size());
    return;
  }
  for (std::size_t done = 0; done < to.size();) {
    const ssize_t got = ::pread(file.fd.get(), to.data() + done, to.size() - done,
                                static_cast<off_t>(offset + done));
    if (got <= 0) give_up("pread failed");
    done += static_cast<std::size_t>(got);
  }
}

/// Threads with their rings, there before any clock starts; each round lets them go once.
class Probe {
 public:
  Probe(const Switches& switches, std::vector<File>& files, const Target* target)
      : switches_(switches), files_(files), blocks_(blocks_of(files, switches.block)) {
    for (unsigned n = 0; n < switches.threads; ++n) {
      threads_.emplace_back([this, target](const std::stop_token& stop) {
        Ring ring(target, switches_.block);
        ++ready_;
        ready_.notify_one();
        for (unsigned round = 0;; ++round) {
          round_.wait(round);
          if (stop.stop_requested()) return;
          work(ring);
          if (--working_ == 0) working_.notify_one();
        }
      });
    }
    for (unsigned seen = ready_; seen < switches.threads; seen = ready_) ready_.wait(seen);
  }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;
  Probe(Probe&&) = delete;
  Probe& operator=(Probe&&) = delete;
  ~Probe() {
    for (std::jthread& thread : threads_) thread.request_stop();
    ++round_;
    round_.notify_all();
  }

  std::chrono::nanoseconds round() {
    next_ = 0;
    working_ = switches_.threads;
    const auto start = Clock::now();
    ++round_;
    round_.notify_all();
    for (unsigned left = switches_.threads; left != 0; left = working_) working_.wait(left);
    return Clock::now() - start;
  }

 private:
  void work(Ring& ring) {
    wc::load::BlockHash hash;
    for (std::size_t at = next_++; at < blocks_.size(); at = next_++) {
      const Block& block = blocks_[at];
      std::byte* const to = ring.next();
      hash.reset();
      for (std::size_t done = 0; done < block.bytes; done += switches_.chunk) {
        const std::span<std::byte> chunk(to + done, std::min(switches_.chunk, block.bytes - done));
        read_chunk(files_[block.file], switches_, block.offset + done, chunk);
        if (switches_.hash) hash.update(chunk);
      }
      if (switches_.hash) (void)hash.finish();
      ring.send(block);
    }
    ring.finish();
  }

  const Switches& switches_;
  std::vector<File>& files_;
  std::vector<Block> blocks_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<unsigned> ready_ = 0;
  std::atomic<unsigned> round_ = 0;
  std::atomic<unsigned> working_ = 0;
  std::vector<std::jthread> threads_;
};

std::uint64_t activated_pages() {
  std::ifstream file("/proc/vmstat");
  std::string key;
  for (std::uint64_t value = 0; file >> key >> value;) {
    if (key == "pgactivate") return value;
  }
  return 0;
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

struct Usage {
  double user = 0;
  double system = 0;
  std::uint64_t activated = 0;

  static Usage now() {
    struct rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return {seconds(usage.ru_utime), seconds(usage.ru_stime), activated_pages()};
  }
};

void touch(const std::vector<File>& files) {
  const auto start = Clock::now();
  std::vector<std::jthread> threads;
  for (const File& file : files) {
    threads.emplace_back([&file] {
      std::byte byte{};
      for (std::size_t at = 0; at < file.bytes; at += 4096) {
        if (::pread(file.fd.get(), &byte, 1, static_cast<off_t>(at)) != 1) give_up("pread failed");
      }
    });
  }
  threads.clear();
  fmt::print("  touched in {:.2f} s\n",
             std::chrono::duration<double>(Clock::now() - start).count());
}

}  // namespace

int main(int argc, char** argv) {
  const Switches switches = switches_of(argc, argv);
  std::vector<File> files = open_files(switches);
  std::size_t bytes = 0;
  std::size_t room = 0;
  for (const File& file : files) {
    bytes += file.bytes;
    room += (file.bytes + switches.block - 1) / switches.block * switches.block;
  }
  std::optional<Target> target;
  if (switches.gpu) target.emplace(Target::of(room));
  if (switches.touch) touch(files);
  Probe probe(switches, files, target ? &*target : nullptr);
  for (int round = 1; round <= switches.rounds; ++round) {
    const Usage before = Usage::now();
    const auto took = probe.round();
    const Usage after = Usage::now();
    fmt::print("  round {}: {:5.1f} GB/s; user {:.2f} s, system {:.2f} s, {} pages activated\n",
               round, static_cast<double>(bytes) / static_cast<double>(took.count()),
               after.user - before.user, after.system - before.system,
               after.activated - before.activated);
    std::fflush(stdout);
  }
  return 0;
}
