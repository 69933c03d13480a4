// A look at a checkpoint that opens no shard and reads no file's content: which files would count,
// with their receipts and the hub's claims. It is what a second load of unchanged files costs.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "checkpoint/checkpoint.hpp"
#include "checkpoint/receipt.hpp"

namespace wc::checkpoint {

struct SurveyedFile {
  std::string name;
  Receipt receipt;
  /// SHA-256 (64 hexadecimal digits) that the hub's cache or `hf download --local-dir` claims for
  /// it; empty where there is no claim, or no receipt that goes with it: in a hub cache the blob
  /// must not be younger than the link in snapshots/ (a blob changed afterwards is), in a local
  /// directory not younger than the timestamp in .cache/huggingface/download/NAME.metadata. Both
  /// mtime and ctime count: the first can be set back.
  std::string claimed_sha256;
};

struct Survey {
  std::string directory;     // absolute
  std::string default_name;  // as Checkpoint::default_name
  /// Every file whose content or presence decides what Checkpoint::open would return: the index,
  /// and all *.safetensors of the directory (or the single file), sorted by name.
  std::vector<SurveyedFile> files;
};

/// Beside an index, a file that can't be had (a dangling link, a FIFO) stands here with an empty
/// receipt: only opening tells whether it counts.
/// Errors: not_found, invalid_argument, denied, corrupt (no regular file), exhausted, unsupported,
/// io.
[[nodiscard]] Result<Survey> survey(const std::string& source, const OpenOptions& options = {});

}  // namespace wc::checkpoint
