// The loader's way from being granted the right to load to the published entry. Whatever ends it
// earlier gives the right and the memory back, and publishes nothing.
#pragma once

#include <chrono>
#include <memory>

#include "api/load_request.hpp"
#include "api/load_source.hpp"
#include "api/progress.hpp"
#include "base/result.hpp"
#include "checkpoint/checkpoint.hpp"
#include "client/publication.hpp"
#include "load/placement.hpp"

namespace wc::api {

/// All that is known before memory is taken.
struct LoadPlan {
  const LoadRequest& request;
  const LoadSource& source;
  const checkpoint::Checkpoint& checkpoint;
  const load::Placement& placement;
};

struct LoadRun {
  wire::fb::PublishedT published;
  load::FillResult filled;  // without its digests
};

/// Errors: exhausted (before a byte is read), corrupt (a file changed), io, cancelled, device, and
/// those of publishing.
[[nodiscard]] Result<LoadRun> run_load(const LoadPlan& plan, client::Publication& publication,
                                       ProgressTeller& progress);

}  // namespace wc::api
