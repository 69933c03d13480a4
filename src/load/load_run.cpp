#include "load/load_run.hpp"

#include <algorithm>
#include <array>
#include <thread>

#include <linux/magic.h>
#include <sys/vfs.h>

#include "base/units.hpp"

namespace wc::load {
namespace {

// File systems of this machine's own disks. On others the latency of the network asks for more
// reads in flight.
bool is_local(FdView fd) {
  struct statfs status = {};
  if (::fstatfs(fd.get(), &status) != 0) return false;
  constexpr std::array<long, 7> kLocal = {
      EXT4_SUPER_MAGIC,      XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, F2FS_SUPER_MAGIC,
      OVERLAYFS_SUPER_MAGIC, TMPFS_MAGIC,     RAMFS_MAGIC};
  return std::ranges::count(kLocal, static_cast<long>(status.f_type)) > 0;
}

// Whether most of the plan's blocks come from the page cache, by a sample of them.
bool mostly_cached(FileCalls& calls, OpenFiles& files, const ReadPlan& plan) {
  const auto& blocks = plan.blocks();
  constexpr std::size_t kSamples = 32;
  const std::size_t step = std::max<std::size_t>(blocks.size() / kSamples, 1);
  std::size_t sampled = 0;
  std::size_t cached = 0;
  for (std::size_t n = 0; n < blocks.size(); n += step, ++sampled) {
    OpenFile& file = files[blocks[n].shard];
    if (file.in_memory() || is_cached(calls, file.buffered(), blocks[n].offset, 1)) ++cached;
  }
  return 2 * cached >= sampled;
}

}  // namespace

LoadContext system_context() { return {system_file_calls(), process_mount_memory()}; }

Result<> check_views(const LoadParts& parts, bool for_writing) {
  const auto& used = parts.placement.used_bytes;
  if (parts.views.size() != used.size()) {
    return fail(Code::invalid_argument, "{} views for {} segments", parts.views.size(),
                used.size());
  }
  for (std::size_t n = 0; n < used.size(); ++n) {
    const memory::View& view = *parts.views[n];
    if (view.bytes() < used[n]) {
      return fail(Code::invalid_argument, "segment {} needs {}, its view has {}", n,
                  format_bytes(used[n]), format_bytes(view.bytes()));
    }
    if (for_writing && view.access() != memory::Access::write) {
      return fail(Code::invalid_argument, "segment {} is not mapped for writing", n);
    }
  }
  if (parts.placement.shard_runs.size() != parts.checkpoint.shards().size()) {
    return fail(Code::invalid_argument, "a placement of {} shards for a checkpoint of {}",
                parts.placement.shard_runs.size(), parts.checkpoint.shards().size());
  }
  return {};
}

unsigned thread_count(const FillOptions& options, FileCalls& calls, OpenFiles& files,
                      const ReadPlan& plan) {
  constexpr unsigned kMost = 256;
  if (options.threads != 0) return std::min(options.threads, kMost);
  if (plan.blocks().empty()) return 1;
  constexpr unsigned kHot = 15;  // of the 16 cores that were measured, 12 give a tenth less
  constexpr unsigned kDisk = 8;  // reads of 4 MiB that a disk has before it
  constexpr unsigned kNetwork = 32;
  const bool hot = options.tier == Tier::hot ||
                   (options.tier == Tier::automatic && mostly_cached(calls, files, plan));
  if (hot) return std::clamp(std::thread::hardware_concurrency(), 1U, kHot);
  return is_local(files[plan.blocks().front().shard].buffered()) ? kDisk : kNetwork;
}

Result<RunOutcome> run_load(const LoadContext& context, const LoadParts& parts,
                            const ReadPlan& plan, const MakeWorkerWith& make_worker,
                            const FillOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  OpenFiles files = TRY(OpenFiles::open(context.calls, parts.checkpoint));
  // Only now: what was changed before the leases were held shows in the receipts.
  TRY(parts.checkpoint.unchanged());
  TierChooser chooser(options.tier, context.calls, files, context.mounts);
  FillOptions effective = options;
  effective.threads = thread_count(options, context.calls, files, plan);
  TRY(run_pipeline(plan, [&] { return make_worker(files, chooser); }, effective));
  TRY(files.check_leases());
  TRY(parts.checkpoint.unchanged());
  return RunOutcome{.tier = chooser.most(),
                    .leased = files.all_leased(),
                    .elapsed = std::chrono::steady_clock::now() - begin};
}

}  // namespace wc::load
