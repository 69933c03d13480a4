// Which way each block of one load is read. What is in the page cache is read through it; for the
// rest the first blocks of a mount are read in each possible way in turn, and the fastest is kept,
// so that the probe costs no read of its own. One load's; threads use it together.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>

#include "load/open_files.hpp"
#include "load/read_plan.hpp"
#include "load/tier.hpp"

namespace wc::load {

class TierChooser {
 public:
  /// All arguments must outlive the chooser.
  TierChooser(Tier wanted, FileCalls& calls, OpenFiles& files, MountMemory& mounts)
      : wanted_(wanted), calls_(calls), files_(files), mounts_(mounts) {}

  [[nodiscard]] Tier choose(const Block& block);
  /// A block was read, in this time.
  void report(const Block& block, Tier tier, std::chrono::nanoseconds time);
  /// A direct read of the file failed: its mount is read through the page cache from now on.
  void direct_failed(const OpenFile& file, const Error& error);
  /// io_uring is refused here.
  void uring_failed(const Error& error);
  /// The tier that read most bytes.
  [[nodiscard]] Tier most() const;

  /// Blocks that each way gets in a trial, and how many of them don't count: the first have those
  /// of the way before beside them, and buffers that nobody has touched yet.
  static constexpr std::uint64_t kTrialBlocks = 24;
  static constexpr std::uint64_t kWarmUpBlocks = 8;

 private:
  struct Trial {
    std::uint64_t taken = 0;
    std::uint64_t finished = 0;
    std::uint64_t bytes = 0;
    std::chrono::nanoseconds time{};
  };
  using Trials = std::array<Trial, 3>;  // of kCandidates

  [[nodiscard]] Tier cold_tier(std::uint64_t device);
  [[nodiscard]] bool possible(Tier tier, std::uint64_t device) const;

  Tier wanted_;
  FileCalls& calls_;
  OpenFiles& files_;
  MountMemory& mounts_;
  mutable std::mutex mutex_;  // of what follows
  std::map<std::uint64_t, Trials> trials_;
  std::map<Tier, std::uint64_t> read_bytes_;
  bool uring_works_ = true;
};

}  // namespace wc::load
