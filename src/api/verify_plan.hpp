// How the tensors of a resident entry and those of a checkpoint on disk go together: matched by
// name, then placed where the entry has them, so that load::compare can read both. Pure.
#pragma once

#include "base/result.hpp"
#include "checkpoint/checkpoint.hpp"
#include "load/placement.hpp"
#include "manifest/manifest.hpp"

namespace wc::api {

/// Errors: mismatch, naming the first ten tensors whose name, dtype, shape or layout differ, and
/// how many there are.
[[nodiscard]] Result<load::Placement> placement_of(const manifest::Manifest& manifest,
                                                   const checkpoint::Checkpoint& checkpoint);

}  // namespace wc::api
