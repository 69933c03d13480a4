// A checkpoint on disk, opened, checked and described: which tensors there are, of which type and
// shape, in which shard, at which offset. Owns one read-only descriptor for each shard. Immutable
// after open; threads may read it together. It never reads tensor data and never maps a file.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"
#include "base/fd.hpp"
#include "base/result.hpp"
#include "checkpoint/receipt.hpp"

namespace wc::checkpoint {

/// One tensor of the checkpoint. All views live as long as the Checkpoint.
struct Tensor {
  std::string_view name;
  Dtype dtype = Dtype::u8;
  std::span<const std::int64_t> shape;  // empty: a scalar
  std::uint32_t shard = 0;              // index into Checkpoint::shards()
  std::uint64_t offset = 0;             // in the shard's file, from its first byte
  std::uint64_t bytes = 0;
};

/// A name-value pair of a shard's `__metadata__`.
struct Metadata {
  std::string_view key;
  std::string_view value;
};

/// One file of the checkpoint.
struct Shard {
  std::string name;               // as in the directory: "model-00001-of-00004.safetensors"
  Fd fd;                          // open for reading
  Receipt receipt;                // taken when it was opened
  std::uint64_t data_offset = 0;  // first byte of tensor data: 8 + header length
  std::vector<Metadata> metadata;
  std::uint32_t tensors = 0;         // in the file
  std::uint32_t passed_over = 0;     // in the file, but not in the index (or in another shard)
  std::uint64_t trailing_bytes = 0;  // only with `allow_trailing`
};

struct OpenOptions {
  bool compat = false;           // rules 4, 5, 11: leading JSON whitespace, further fields
  bool allow_trailing = false;   // rule 22
  bool follow_symlinks = false;  // links that leave the directory
  unsigned threads = 0;          // for headers; 0: as many as there are cores, 8 at most
};

class Checkpoint {
 public:
  /// Opens a directory, a single `.safetensors` file, or a repository id (`org/name`) in the local
  /// hub cache; every header is checked before this returns.
  /// Errors: not_found, corrupt, invalid_argument (ambiguous), denied (a link that leaves),
  /// exhausted (memory, descriptors), unsupported (no openat2), io.
  static Result<Checkpoint> open(const std::string& source, const OpenOptions& options = {});

  /// In the order of shards, and within one in the order of its bytes.
  [[nodiscard]] std::span<const Tensor> tensors() const;
  [[nodiscard]] std::span<const Shard> shards() const;
  /// The directory (or the file's directory), absolute, and what a published entry is called
  /// unless the user says otherwise: `org/name` for a hub checkpoint, else the directory's name,
  /// else the file's without `.safetensors`.
  [[nodiscard]] const std::string& directory() const;
  [[nodiscard]] const std::string& default_name() const;
  /// Sum of the listed tensors' bytes, and of the shards' sizes.
  [[nodiscard]] std::uint64_t tensor_bytes() const;
  [[nodiscard]] std::uint64_t file_bytes() const;
  /// Rule 27: each shard still is the file that was opened. Errors: corrupt, naming the file and
  /// what changed.
  [[nodiscard]] Result<> unchanged() const;

  // Special members, and whatever the implementation needs, are the room's own business.
  Checkpoint(Checkpoint&&) noexcept;
  Checkpoint& operator=(Checkpoint&&) noexcept;
  ~Checkpoint();

 private:
  struct State;
  explicit Checkpoint(std::unique_ptr<State> state);
  static Result<Checkpoint> open_resolved(std::unique_ptr<State> state, const std::string& file,
                                          const OpenOptions& options);
  std::unique_ptr<State> state_;
};

}  // namespace wc::checkpoint
