// How fast a checkpoint is brought into host memory, beside the floor of the same run: plain
// parallel reads of the same files. Measured and floor runs alternate; medians are compared.
//
//   load_bench DIR [GIB] [RUNS] [hot,cold]     makes its checkpoints in DIR (4 GiB each), keeps
//   them
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <sys/resource.h>

#include "base/units.hpp"
#include "bench/load_floor.hpp"
#include "checkpoint/checkpoint.hpp"
#include "load/fill.hpp"
#include "memory/host/host_device.hpp"
#include "tests/support/make_checkpoint.hpp"

namespace wc::bench {
namespace {

[[noreturn]] void give_up(const Error& error) {
  std::cerr << name_of(error.code) << ": " << error.message << "\n";
  std::exit(1);
}

template <typename T>
T must(Result<T> result) {
  if (!result) give_up(result.error());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

// Four shards of tensors of 32 MiB, or of the given sizes in turn.
std::string make(const std::filesystem::path& folder, std::uint64_t bytes,
                 const std::vector<std::uint64_t>& sizes) {
  if (std::filesystem::exists(folder / "model.safetensors.index.json")) return folder.string();
  std::vector<support::MadeShard> shards;
  constexpr unsigned kShards = 4;
  unsigned count = 0;
  for (unsigned n = 1; n <= kShards; ++n) {
    support::MadeShard shard = {.name = format("model-{:05}-of-{:05}.safetensors", n, kShards),
                                .tensors = {}};
    for (std::uint64_t done = 0; done < bytes / kShards;) {
      const std::uint64_t size = sizes[count % sizes.size()];
      shard.tensors.push_back(support::made_tensor(format("layer.{}.weight", count++), size));
      done += size;
    }
    shards.push_back(std::move(shard));
  }
  std::cerr << "making " << folder << "\n";
  return support::write_checkpoint(folder, shards);
}

// Memory of a device for one checkpoint, mapped anew for each run, as a load does.
class Target {
 public:
  Target(std::unique_ptr<memory::Device> device, const load::Placement& placement)
      : device_(std::move(device)) {
    for (const std::uint64_t bytes : placement.segment_bytes) {
      segments_.push_back(must(device_->create(bytes)));
    }
  }
  [[nodiscard]] memory::Device& device() { return *device_; }
  [[nodiscard]] std::vector<std::unique_ptr<memory::View>> map() {
    std::vector<std::unique_ptr<memory::View>> views;
    for (const auto& segment : segments_) views.push_back(must(device_->map(*segment)));
    return views;
  }

 private:
  std::unique_ptr<memory::Device> device_;
  std::vector<std::unique_ptr<memory::Segment>> segments_;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// What all threads of this process have used: on a machine that is not quiet it says more than
// time.
double processor_seconds() {
  struct rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct Contestant {
  std::string name;
  std::function<Seconds()> run;
  std::vector<double> seconds = {};
  std::vector<double> processor = {};

  void measure() {
    const double before = processor_seconds();
    seconds.push_back(run().count());
    processor.push_back(processor_seconds() - before);
  }
};

void report(const std::string& title, std::vector<Contestant>& contestants, std::uint64_t bytes,
            unsigned runs, const std::function<void()>& before) {
  for (unsigned n = 0; n < runs; ++n) {
    for (auto& contestant : contestants) {
      before();
      contestant.measure();
    }
  }
  std::cout << format("{}: GB/s median of {} (best), processor s per GB\n", title, runs);
  const double gigabytes = static_cast<double>(bytes) / 1e9;
  for (const auto& contestant : contestants) {
    const double best = *std::ranges::min_element(contestant.seconds);
    std::cout << format("  {:<56} {:>6.2f} ({:.2f})  {:.3f}\n", contestant.name,
                        gigabytes / median(contestant.seconds), gigabytes / best,
                        median(contestant.processor) / gigabytes);
  }
}

class Bench {
 public:
  Bench(std::string title, const std::string& folder, unsigned runs)
      : title_(std::move(title)),
        runs_(runs),
        checkpoint_(must(checkpoint::Checkpoint::open(folder))),
        placement_(must(load::place(checkpoint_))) {
    for (const auto& shard : checkpoint_.shards()) {
      files_.push_back({folder + "/" + shard.name, shard.receipt.size_bytes});
    }
  }

  void hot() {
    Target huge(must(memory::open_host_device()), larger());
    Target small(must(memory::open_host_device({.huge_pages = false})), larger());
    const unsigned cores = std::thread::hardware_concurrency();
    std::vector<Contestant> all;
    for (const std::uint64_t read_bytes : {256 << 10, 1 << 20, 4 << 20}) {
      const FloorOptions options = {.threads = cores, .read_bytes = read_bytes};
      const auto size = format_bytes(read_bytes);
      all.push_back({format("floor: pread of {} into fallocated memory", size),
                     [&, options] { return floor(small, options); }});
      all.push_back({format("floor: pread of {} into the same huge pages", size),
                     [&, options] { return floor(huge, options); }});
    }
    for (const bool digest : {true, false}) {
      all.push_back({format("fill{}", digest ? "" : " without digests"),
                     [&, digest] { return fill(huge, load::Tier::automatic, digest); }});
    }
    (void)read_away(files_, {});  // into the page cache
    report(title_ + ", hot", all, checkpoint_.file_bytes(), runs_, [] {});
  }

  void cold() {
    Target target(must(memory::open_host_device()), placement_);
    std::vector<Contestant> all;
    for (const bool direct : {true, false}) {
      for (const unsigned threads : {2U, 8U}) {
        const FloorOptions options = {.threads = threads, .direct = direct};
        all.push_back(
            {format("floor: {} reads, {} threads", direct ? "direct" : "buffered", threads),
             [&, options] { return read_away(files_, options); }});
      }
    }
    for (const load::Tier tier : {load::Tier::automatic, load::Tier::direct,
                                  load::Tier::direct_uring, load::Tier::buffered}) {
      all.push_back(
          {format("fill, {}", name_of(tier)), [&, tier] { return fill(target, tier, true); }});
    }
    report(title_ + ", cold", all, checkpoint_.file_bytes(), runs_, [&] { drop_caches(files_); });
    std::cout << format("  automatic became {}\n", name_of(automatic_));
  }

 private:
  // The floor puts whole files, headers too, behind one another.
  [[nodiscard]] load::Placement larger() const {
    load::Placement placement = placement_;
    placement.segment_bytes.at(0) += checkpoint_.file_bytes() - checkpoint_.tensor_bytes() + kMiB;
    return placement;
  }

  Seconds floor(Target& target, const FloorOptions& options) {
    const auto views = target.map();
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address is what a view gives.
    return read_into_memory(files_, reinterpret_cast<std::byte*>(views[0]->address()), options);
  }

  Seconds fill(Target& target, load::Tier tier, bool digest) {
    const auto owned = target.map();
    std::vector<memory::View*> views;
    for (const auto& view : owned) views.push_back(view.get());
    const auto result = must(load::fill(checkpoint_, placement_, target.device(), views,
                                        {.tier = tier, .digest = digest}));
    if (tier == load::Tier::automatic) automatic_ = result.tier;
    return result.elapsed;
  }

  std::string title_;
  unsigned runs_;
  checkpoint::Checkpoint checkpoint_;
  load::Placement placement_;
  std::vector<FloorFile> files_;
  load::Tier automatic_ = load::Tier::automatic;
};

int run(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "load_bench DIR [GIB] [RUNS]\n";
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  const std::uint64_t bytes = (argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 4) << 30;
  const auto runs = static_cast<unsigned>(argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 7);
  const std::string what = argc > 4 ? argv[4] : "hot,cold";
  const auto dense = make(folder / "dense", bytes, {32 * kMiB});
  const auto small = make(folder / "small", bytes, {64 << 10, 512, 1 << 20, 100, 16 << 10, 2});
  if (what.find("hot") != std::string::npos) {
    Bench("dense", dense, runs).hot();
    Bench("many small tensors", small, runs).hot();
  }
  if (what.find("cold") != std::string::npos) Bench("dense", dense, runs).cold();
  return 0;
}

}  // namespace
}  // namespace wc::bench

int main(int argc, char** argv) { return wc::bench::run(argc, argv); }
