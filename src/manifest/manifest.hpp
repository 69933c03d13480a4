// The manifest of a published entry, read in place: which tensors there are and where they lie,
// with attributes, identity and provenance. A Manifest is a view: it owns nothing, is cheap to
// copy, and is made only by check(), so that whoever holds one may follow every index in it.
//
// The buffer must outlive the Manifest and every view taken from it, and its bytes must not change
// meanwhile (a memfd sealed against writing). Immutable: any number of threads may read it.
// It refuses to be made from anything that would lead a reader out of the buffer or of a segment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include "base/dtype.hpp"
#include "base/result.hpp"
#include "manifest/limits.hpp"

namespace wc::manifest {

namespace fb {
struct Manifest;
struct TensorRecord;
}  // namespace fb

enum class Kind : std::uint8_t { parameter = 0, buffer = 1 };

struct TensorView {
  std::string_view name;
  Dtype dtype = Dtype::u8;
  std::span<const std::int64_t> shape;    // empty: a scalar
  std::span<const std::int64_t> strides;  // in elements; empty: contiguous, row-major
  std::uint32_t segment = 0;
  std::uint64_t offset = 0;  // bytes, from the segment's start
  std::uint64_t bytes = 0;   // from the first to the last element's end; 0 where there is none
  Kind kind = Kind::parameter;
  bool persistent = true;
  bool requires_grad = false;
  bool view = false;                  // of memory that no other tensor here begins
  std::optional<std::uint32_t> file;  // index into files(), where its bytes lie unchanged
  std::uint64_t file_offset = 0;      // bytes, in that file
};

/// How a segment was created, bits of SegmentView::flags. Bits that are not here are passed over.
inline constexpr std::uint64_t kSegmentGpuDirectRdma = 1;
inline constexpr std::uint64_t kSegmentCompressible = 2;
inline constexpr std::uint64_t kSegmentFabric = 4;

struct SegmentView {
  std::uint64_t bytes = 0;       // of its memory, as exported; at least 1
  std::uint64_t used_bytes = 0;  // of it, from 0, that tensors lie in
  std::string_view digest;       // "xxh3t-4m:<32 hex>" of the used bytes; empty: none
  std::uint64_t address = 0;     // fixed virtual address; 0: any
  std::uint64_t flags = 0;
};

struct FileView {
  std::string_view name;  // as in the checkpoint's directory
  std::uint64_t bytes = 0;
  std::string_view digest;   // "xxh3t-4m:<32 hex>"; empty: none
  std::uint64_t device = 0;  // the receipt of the file when it was read
  std::uint64_t inode = 0;
  std::int64_t mtime_ns = 0;
  std::int64_t ctime_ns = 0;
};

using ValueView =
    std::variant<bool, std::int64_t, double, std::string_view, std::span<const std::byte>>;

struct AttributeView {
  std::string_view path;  // a tensor's name, or a module's path ("" the root)
  std::string_view name;
  bool of_tensor = false;  // what the path is
  ValueView value;
};

struct ProvenanceView {
  std::string_view publisher;  // "weightcache 0.1.0"
  std::string_view source;     // the checkpoint's directory or file, for people and for verify
  std::string_view command;
  std::string_view host;
  std::int64_t published_unix_ns = 0;
  std::int64_t took_ns = 0;  // from the right to load to publication
};

/// A stretch of one of the manifest's tables, made element by element while it is read. Valid as
/// long as the manifest's buffer. T is SegmentView, FileView or AttributeView.
template <typename T>
class List {
 public:
  class Iterator {
   public:
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    Iterator(const List& list, std::uint32_t at) : list_(list), at_(at) {}
    T operator*() const { return list_[at_]; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++at_;
      return before;
    }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    List list_;
    std::uint32_t at_ = 0;
  };

  List() = default;
  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  /// `index` must be below size().
  [[nodiscard]] T operator[](std::uint32_t index) const;
  [[nodiscard]] Iterator begin() const { return {*this, 0}; }
  [[nodiscard]] Iterator end() const { return {*this, size_}; }

 private:
  friend class Manifest;
  List(const fb::Manifest* root, std::uint32_t first, std::uint32_t size)
      : root_(root), first_(first), size_(size) {}
  const fb::Manifest* root_ = nullptr;
  std::uint32_t first_ = 0;
  std::uint32_t size_ = 0;
};

template <>
SegmentView List<SegmentView>::operator[](std::uint32_t index) const;
template <>
FileView List<FileView>::operator[](std::uint32_t index) const;
template <>
AttributeView List<AttributeView>::operator[](std::uint32_t index) const;

struct CheckOptions {
  /// What the daemon's helper checks once, at publication: besides all that a reader needs to stay
  /// inside the buffer and the segments, the names (valid, unique, in order), the alignment rule,
  /// texts, digests, and that the fingerprint is its document's. A reader of a published entry
  /// leaves it out: 36,000 tensors then take a fraction of a millisecond.
  bool full = true;
};

class Manifest {
 public:
  /// The buffer's address must be a multiple of 8 (a mapping is). Errors: corrupt, naming the
  /// tensor (segment, file, attribute) and the numbers; invalid_argument (the address).
  [[nodiscard]] static Result<Manifest> check(std::span<const std::byte> buffer,
                                              const CheckOptions& options = {});

  [[nodiscard]] std::uint32_t tensor_count() const { return tensors_; }
  /// In the publisher's order; `index` must be below tensor_count().
  [[nodiscard]] TensorView tensor(std::uint32_t index) const;
  [[nodiscard]] std::string_view tensor_name(std::uint32_t index) const;
  /// The index of the tensor at this position in the order of names; below tensor_count().
  [[nodiscard]] std::uint32_t by_name(std::uint32_t position) const;
  /// By binary search.
  [[nodiscard]] std::optional<std::uint32_t> find(std::string_view name) const;

  [[nodiscard]] List<SegmentView> segments() const;
  [[nodiscard]] List<FileView> files() const;
  /// In the order of (path, modules before tensors, name).
  [[nodiscard]] List<AttributeView> attributes() const;
  /// Those of a tensor or module path, by binary search.
  [[nodiscard]] List<AttributeView> attributes_of(std::string_view path) const;
  [[nodiscard]] ProvenanceView provenance() const;
  /// 32 hexadecimal digits, and the canonical document that they are the digest of.
  [[nodiscard]] std::string_view fingerprint() const;
  [[nodiscard]] std::string_view fingerprint_json() const;

  /// Sum of the segments' bytes: what the entry occupies on its device.
  [[nodiscard]] std::uint64_t segment_bytes() const { return segment_bytes_; }
  /// Of them, those that tensors may lie in.
  [[nodiscard]] std::uint64_t used_bytes() const { return used_bytes_; }

 private:
  friend class Checker;
  Manifest() = default;

  const fb::Manifest* root_ = nullptr;
  const fb::TensorRecord* records_ = nullptr;
  const std::uint32_t* order_ = nullptr;
  const std::int64_t* integers_ = nullptr;
  const char* text_ = nullptr;
  std::uint32_t tensors_ = 0;
  std::uint64_t segment_bytes_ = 0;
  std::uint64_t used_bytes_ = 0;
};

}  // namespace wc::manifest
