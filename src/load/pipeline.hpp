// Threads that take the blocks of a plan, in order, one at a time. The first error ends all of
// them; so does the caller's wish. Starts its threads and joins them before it returns.
#pragma once

#include <functional>
#include <memory>

#include "load/fill.hpp"
#include "load/read_plan.hpp"

namespace wc::load {

/// What one thread does with blocks. Made, used and destroyed on that thread.
class BlockWorker {
 public:
  virtual ~BlockWorker() = default;
  [[nodiscard]] virtual Result<> take(const Block& block) = 0;
  /// After the thread's last block, where there was no error.
  [[nodiscard]] virtual Result<> finish() = 0;
};

using MakeWorker = std::function<Result<std::unique_ptr<BlockWorker>>()>;

/// Uses `threads`, `progress` and `cancel` of the options; `threads` may not be 0. Errors: those of
/// the workers; cancelled.
[[nodiscard]] Result<> run_pipeline(const ReadPlan& plan, const MakeWorker& make_worker,
                                    const FillOptions& options);

}  // namespace wc::load
