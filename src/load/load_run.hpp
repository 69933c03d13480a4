// What fill() and compare() have in common: files opened and leased, the way of reading chosen, the
// threads started, and at the end the proof that the files are still the same. The functions here
// take the system's calls as an argument; fill.hpp's are these over the real ones.
#pragma once

#include <span>

#include "load/fill.hpp"
#include "load/open_files.hpp"
#include "load/pipeline.hpp"
#include "load/read_plan.hpp"
#include "load/tier_chooser.hpp"

namespace wc::load {

/// The world that a load runs in.
struct LoadContext {
  FileCalls& calls;
  MountMemory& mounts;
};

[[nodiscard]] LoadContext system_context();

/// One load, for its workers. All references outlive them.
struct LoadParts {
  const checkpoint::Checkpoint& checkpoint;
  const Placement& placement;
  memory::Device& device;
  std::span<memory::View* const> views;
};

/// Whether the views are those that the placement asks for. Errors: invalid_argument.
[[nodiscard]] Result<> check_views(const LoadParts& parts, bool for_writing);

/// Reading threads for a load: as wished, else by what is cached, the cores, and the file system.
[[nodiscard]] unsigned thread_count(const FillOptions& options, FileCalls& calls, OpenFiles& files,
                                    const ReadPlan& plan);

[[nodiscard]] Result<FillResult> fill_in(const LoadContext& context, const LoadParts& parts,
                                         const FillOptions& options);
[[nodiscard]] Result<std::vector<Mismatch>> compare_in(const LoadContext& context,
                                                       const LoadParts& parts, std::size_t limit,
                                                       const FillOptions& options);

/// Runs workers over a plan, then checks leases and receipts: nothing may have changed. The makers
/// get the open files and the chooser of this load. Errors: as fill().
struct RunOutcome {
  Tier tier = Tier::hot;
  bool leased = false;
  std::chrono::nanoseconds elapsed{};
};
using MakeWorkerWith =
    std::function<Result<std::unique_ptr<BlockWorker>>(OpenFiles& files, TierChooser& chooser)>;
[[nodiscard]] Result<RunOutcome> run_load(const LoadContext& context, const LoadParts& parts,
                                          const ReadPlan& plan, const MakeWorkerWith& make_worker,
                                          const FillOptions& options);

}  // namespace wc::load
