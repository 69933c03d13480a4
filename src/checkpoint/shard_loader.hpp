// Opens a checkpoint's shards and reads their headers, several at a time, each thread with a parser
// and buffers of its own. All threads have ended when this returns. The error that is told is the
// one of the first shard that has one, whatever the threads' order.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "checkpoint/beneath.hpp"
#include "checkpoint/checkpoint.hpp"
#include "checkpoint/header.hpp"
#include "checkpoint/shard_index.hpp"

namespace wc::checkpoint {

struct LoadedShard {
  OpenedFile file;
  Header header;
  /// For each of the header's tensors, whether the index wants it from here; empty without an
  /// index.
  std::vector<bool> wanted;
};

/// `index`: nullptr where there is none; else `names` are its shards, in its order.
/// Errors: those of Beneath::open_file and HeaderParser, naming the file.
[[nodiscard]] Result<std::vector<LoadedShard>> load_shards(const Beneath& folder,
                                                           std::span<const std::string> names,
                                                           const ShardIndex* index,
                                                           const OpenOptions& options);

}  // namespace wc::checkpoint
