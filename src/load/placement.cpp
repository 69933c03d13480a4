#include "load/placement.hpp"

#include <algorithm>

#include "base/units.hpp"

namespace wc::load {
namespace {

std::uint64_t round_up(std::uint64_t bytes, std::uint64_t step) {
  return (bytes + step - 1) / step * step;
}

// Puts one tensor after the other.
class Placer {
 public:
  Placer(const checkpoint::Checkpoint& checkpoint, const PlacementOptions& options)
      : alignment_(options.alignment),
        limit_(options.max_segment_bytes / options.granularity * options.granularity) {
    placement_.tensors.reserve(checkpoint.tensors().size());
    placement_.shard_runs.resize(checkpoint.shards().size());
  }

  void add(const checkpoint::Tensor& tensor) {
    if (placement_.used_bytes.empty() || !fits(tensor.bytes)) placement_.used_bytes.push_back(0);
    const auto segment = static_cast<std::uint32_t>(placement_.used_bytes.size() - 1);
    std::uint64_t& used = placement_.used_bytes.back();
    // A tensor without bytes lies at the start, since the next boundary may be past the last byte.
    const std::uint64_t offset = tensor.bytes == 0 ? 0 : round_up(used, alignment_);
    placement_.tensors.push_back({.segment = segment, .offset = offset});
    if (tensor.bytes == 0) return;
    used = offset + tensor.bytes;
    extend(placement_.shard_runs[tensor.shard], {.file_offset = tensor.offset,
                                                 .bytes = tensor.bytes,
                                                 .segment_offset = offset,
                                                 .segment = segment});
  }

  // A segment is never empty, so that a checkpoint whose tensors have no bytes is none too special.
  Placement finish(std::uint64_t granularity) && {
    for (const std::uint64_t used : placement_.used_bytes) {
      placement_.segment_bytes.push_back(round_up(std::max(used, std::uint64_t{1}), granularity));
    }
    return std::move(placement_);
  }

  [[nodiscard]] std::uint64_t limit() const { return limit_; }

 private:
  [[nodiscard]] bool fits(std::uint64_t bytes) const {
    const std::uint64_t used = placement_.used_bytes.back();
    if (used > limit_ - std::min(limit_, alignment_)) return false;
    return bytes <= limit_ - round_up(used, alignment_);
  }

  // Bytes that follow each other in the file and in the segment are one run.
  static void extend(std::vector<FileRun>& runs, const FileRun& next) {
    if (!runs.empty()) {
      FileRun& last = runs.back();
      if (last.segment == next.segment && last.file_offset + last.bytes == next.file_offset &&
          last.segment_offset + last.bytes == next.segment_offset) {
        last.bytes += next.bytes;
        return;
      }
    }
    runs.push_back(next);
  }

  std::uint64_t alignment_;
  std::uint64_t limit_;
  Placement placement_;
};

}  // namespace

Result<Placement> place(const checkpoint::Checkpoint& checkpoint, const PlacementOptions& options) {
  if (options.alignment == 0 || options.granularity == 0) {
    return fail(Code::invalid_argument, "placement with an alignment or granularity of 0");
  }
  Placer placer(checkpoint, options);
  for (const checkpoint::Tensor& tensor : checkpoint.tensors()) {
    if (tensor.bytes > placer.limit()) {
      return fail(Code::exhausted, "tensor \"{}\" has {}, a segment {} at most", tensor.name,
                  format_bytes(tensor.bytes), format_bytes(placer.limit()));
    }
    placer.add(tensor);
  }
  return std::move(placer).finish(options.granularity);
}

}  // namespace wc::load
