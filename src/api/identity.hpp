// What a checkpoint is, once its headers have been read (structure) and its bytes (fingerprint).
// Pure functions.
#pragma once

#include <span>
#include <string>

#include "base/result.hpp"
#include "checkpoint/checkpoint.hpp"
#include "manifest/fingerprint.hpp"

namespace wc::api {

/// 32 hexadecimal digits over names, dtypes, shapes and sizes of all tensors, whatever shard they
/// are in: equal content has equal structure.
[[nodiscard]] std::string structure_of(const checkpoint::Checkpoint& checkpoint);

/// The raw form of the shards that were read; `digests` are theirs, in the same order.
[[nodiscard]] manifest::Fingerprint fingerprint_of(const checkpoint::Checkpoint& checkpoint,
                                                   std::span<const std::string> digests);

}  // namespace wc::api
