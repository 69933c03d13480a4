// Writes a manifest. Every rule that Manifest::check knows is checked here before a byte is
// written, so that what finish() returns passes a full check. One thread at a time.
// It refuses, with invalid_argument, what no reader would accept; after an error the builder is as
// it was before the call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/dtype.hpp"
#include "base/result.hpp"
#include "manifest/fingerprint.hpp"
#include "manifest/manifest.hpp"

namespace wc::manifest {

/// Views need to live only during the call.
struct TensorOptions {
  std::string_view name{};
  Dtype dtype = Dtype::u8;
  std::span<const std::int64_t> shape{};    // empty: a scalar
  std::span<const std::int64_t> strides{};  // in elements, as many as dimensions; empty: contiguous
  std::uint32_t segment = 0;                // added before
  std::uint64_t offset = 0;
  Kind kind = Kind::parameter;
  bool persistent = true;
  bool requires_grad = false;
  /// It starts inside memory that no tensor of this manifest begins (a slice whose base is not
  /// published): free of the alignment rule, but for its own elements' size.
  bool view = false;
  std::optional<std::uint32_t> file{};  // added before: its bytes lie there unchanged
  std::uint64_t file_offset = 0;
};

struct SegmentOptions {
  std::uint64_t bytes = 0;
  std::uint64_t used_bytes = 0;
  std::string digest{};  // empty: none
  std::uint64_t address = 0;
  std::uint64_t flags = 0;
};

struct FileOptions {
  std::string name{};
  std::uint64_t bytes = 0;
  std::string digest{};  // empty: none
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t mtime_ns = 0;
  std::int64_t ctime_ns = 0;
};

using Value = std::variant<bool, std::int64_t, double, std::string, std::vector<std::byte>>;

struct AttributeOptions {
  std::string path{};  // a tensor's name, or a module's path ("" the root)
  std::string name{};
  bool of_tensor = false;
  Value value{};
};

/// Texts for people: what is not UTF-8 in them is replaced, what is past 4,096 bytes cut.
struct ProvenanceOptions {
  std::string publisher{};
  std::string source{};
  std::string command{};
  std::string host{};
  std::int64_t published_unix_ns = 0;
  std::int64_t took_ns = 0;
};

class Builder {
 public:
  Builder();
  Builder(Builder&&) noexcept;
  Builder& operator=(Builder&&) noexcept;
  ~Builder();

  /// Room for this many tensors; only ever a matter of speed.
  void reserve(std::uint32_t tensors);
  /// Each returns the index of what was added. Errors: invalid_argument, naming it and the rule.
  [[nodiscard]] Result<std::uint32_t> add_segment(const SegmentOptions& segment);
  [[nodiscard]] Result<std::uint32_t> add_file(const FileOptions& file);
  [[nodiscard]] Result<std::uint32_t> add_tensor(const TensorOptions& tensor);
  /// A tensor's attribute may come before the tensor; finish() wants both.
  [[nodiscard]] Result<> set_attribute(const AttributeOptions& attribute);
  /// Required. Errors: as canonical_json().
  [[nodiscard]] Result<> set_fingerprint(const Fingerprint& fingerprint);
  void set_provenance(ProvenanceOptions provenance);
  /// The digest of a segment's bytes, where it is known only after the tensors.
  [[nodiscard]] Result<> set_segment_digest(std::uint32_t segment, std::string digest);

  /// The manifest's bytes. Errors: invalid_argument (a name twice, an unaligned tensor that is no
  /// view, no fingerprint), exhausted (larger than 1 GiB).
  [[nodiscard]] Result<std::vector<std::byte>> finish() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace wc::manifest
