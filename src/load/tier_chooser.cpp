#include "load/tier_chooser.hpp"

#include <algorithm>
#include <optional>

#include "base/log.hpp"

namespace wc::load {
namespace {

// In the order of preference between equals.
constexpr std::array<Tier, 3> kCandidates = {Tier::direct, Tier::direct_uring, Tier::buffered};

// The share of the best one's time so far that a candidate must stay below. The page cache costs
// more than time: twice the processor's work, and what others had in it.
constexpr std::array<double, 3> kClearlyFaster = {1.0, 0.9, 0.8};

bool is_direct(Tier tier) { return tier == Tier::direct || tier == Tier::direct_uring; }

}  // namespace

Tier TierChooser::choose(const Block& block) {
  const OpenFile& file = files_[block.shard];
  if (wanted_ == Tier::automatic) {
    if (file.in_memory()) return Tier::hot;
    if (is_cached(calls_, file.buffered(), block.offset, block.bytes)) return Tier::hot;
    const std::scoped_lock lock(mutex_);
    return cold_tier(file.device());
  }
  const std::scoped_lock lock(mutex_);
  if (possible(wanted_, file.device())) return wanted_;
  return possible(Tier::direct, file.device()) ? Tier::direct : Tier::buffered;
}

bool TierChooser::possible(Tier tier, std::uint64_t device) const {
  if (tier == Tier::direct_uring && !uring_works_) return false;
  return !is_direct(tier) || mounts_.direct_works(device);
}

Tier TierChooser::cold_tier(std::uint64_t device) {
  const auto known = mounts_.fastest(device);
  if (known && possible(*known, device)) return *known;
  Trials& trials = trials_[device];
  std::optional<std::size_t> running;  // the trial with most of its blocks behind it
  for (std::size_t n = 0; n < kCandidates.size(); ++n) {
    if (!possible(kCandidates.at(n), device)) continue;
    if (trials.at(n).taken < kTrialBlocks) {
      ++trials.at(n).taken;
      return kCandidates.at(n);
    }
    if (!running || trials.at(n).finished > trials.at(*running).finished) running = n;
  }
  return running ? kCandidates.at(*running) : Tier::buffered;
}

void TierChooser::report(const Block& block, Tier tier, std::chrono::nanoseconds time) {
  const std::scoped_lock lock(mutex_);
  read_bytes_[tier] += block.bytes;
  const std::uint64_t device = files_[block.shard].device();
  const auto found = trials_.find(device);
  if (wanted_ != Tier::automatic || tier == Tier::hot || found == trials_.end()) return;
  if (mounts_.fastest(device)) return;

  std::optional<Tier> best;
  double best_ns_per_byte = 0;
  for (std::size_t n = 0; n < kCandidates.size(); ++n) {
    Trial& trial = found->second.at(n);
    if (kCandidates.at(n) == tier) {
      if (++trial.finished > kWarmUpBlocks) {
        trial.bytes += block.bytes;
        trial.time += time;
      }
    }
    if (!possible(kCandidates.at(n), device)) continue;
    if (trial.finished < kTrialBlocks) return;  // too early to decide
    const double ns_per_byte =
        static_cast<double>(trial.time.count()) / static_cast<double>(trial.bytes);
    if (best && ns_per_byte >= kClearlyFaster.at(n) * best_ns_per_byte) continue;
    best = kCandidates.at(n);
    best_ns_per_byte = ns_per_byte;
  }
  if (!best) return;
  mounts_.remember(device, *best);
  log(Level::debug, "device {}: what isn't cached is read {}", device, name_of(*best));
}

void TierChooser::direct_failed(const OpenFile& file, const Error& error) {
  if (!mounts_.direct_failed(file.device())) return;
  log(Level::info, "\"{}\": no direct reads from its mount, the page cache serves: {}", file.name(),
      error.message);
}

void TierChooser::uring_failed(const Error& error) {
  const std::scoped_lock lock(mutex_);
  if (!std::exchange(uring_works_, false)) return;
  log(Level::debug, "no io_uring, threads serve: {}", error.message);
}

Tier TierChooser::most() const {
  const std::scoped_lock lock(mutex_);
  const auto most = std::ranges::max_element(
      read_bytes_, [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == read_bytes_.end() ? Tier::hot : most->first;
}

}  // namespace wc::load
