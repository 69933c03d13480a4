#include "api/verify_plan.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "base/units.hpp"

namespace wc::api {
namespace {

constexpr std::size_t kNamed = 10;

// The first differences in words, and the number of all.
class Complaints {
 public:
  void add(std::string_view tensor, std::string_view what) {
    if (++count_ <= kNamed) text_ += format("; tensor \"{}\": {}", tensor, what);
  }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] Failure failure() const {
    const std::string rest =
        count_ > kNamed ? format("; and {} more", format_count(count_ - kNamed)) : std::string();
    return fail(Code::mismatch, "{} of the tensors are not those on disk{}{}", format_count(count_),
                text_, rest);
  }

 private:
  std::string text_;
  std::size_t count_ = 0;
};

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (const std::int64_t dimension : shape) {
    if (text.size() > 1) text += ", ";
    text += format("{}", dimension);
  }
  return text + "]";
}

// What differs between the resident tensor and the one on disk; empty where nothing does.
std::string difference(const manifest::TensorView& resident, const checkpoint::Tensor& on_disk) {
  if (resident.dtype != on_disk.dtype)
    return format("dtype {} is {} on disk", name_of(resident.dtype), name_of(on_disk.dtype));
  if (!std::ranges::equal(resident.shape, on_disk.shape))
    return format("shape {} is {} on disk", shape_text(resident.shape), shape_text(on_disk.shape));
  if (!resident.strides.empty()) return "has strides of its own, which no file can";
  if (resident.bytes != on_disk.bytes)
    return format("{} bytes are {} on disk", format_count(resident.bytes),
                  format_count(on_disk.bytes));
  return {};
}

// Appends a tensor's bytes to the last run of its shard where both go on without a gap.
void add_run(std::vector<load::FileRun>& runs, const checkpoint::Tensor& tensor,
             const load::PlacedTensor& place) {
  if (tensor.bytes == 0) return;
  if (!runs.empty()) {
    load::FileRun& last = runs.back();
    if (last.segment == place.segment && last.file_offset + last.bytes == tensor.offset &&
        last.segment_offset + last.bytes == place.offset) {
      last.bytes += tensor.bytes;
      return;
    }
  }
  runs.push_back({tensor.offset, tensor.bytes, place.offset, place.segment});
}

void name_missing(const manifest::Manifest& manifest, const checkpoint::Checkpoint& checkpoint,
                  Complaints& complaints) {
  std::vector<std::string_view> on_disk;
  on_disk.reserve(checkpoint.tensors().size());
  for (const auto& tensor : checkpoint.tensors()) on_disk.push_back(tensor.name);
  std::ranges::sort(on_disk);
  for (std::uint32_t i = 0; i < manifest.tensor_count(); ++i) {
    const std::string_view name = manifest.tensor_name(manifest.by_name(i));
    if (!std::ranges::binary_search(on_disk, name)) complaints.add(name, "is not on disk");
  }
}

}  // namespace

Result<load::Placement> placement_of(const manifest::Manifest& manifest,
                                     const checkpoint::Checkpoint& checkpoint) {
  load::Placement placement;
  for (const manifest::SegmentView segment : manifest.segments()) {
    placement.segment_bytes.push_back(segment.bytes);
    placement.used_bytes.push_back(segment.used_bytes);
  }
  placement.tensors.reserve(checkpoint.tensors().size());
  placement.shard_runs.resize(checkpoint.shards().size());

  Complaints complaints;
  for (const checkpoint::Tensor& tensor : checkpoint.tensors()) {
    const std::optional<std::uint32_t> found = manifest.find(tensor.name);
    if (!found) {
      complaints.add(tensor.name, "is on disk alone");
      continue;
    }
    const manifest::TensorView resident = manifest.tensor(*found);
    if (const std::string what = difference(resident, tensor); !what.empty())
      complaints.add(tensor.name, what);
    const load::PlacedTensor place{resident.segment, resident.offset};
    placement.tensors.push_back(place);
    add_run(placement.shard_runs[tensor.shard], tensor, place);
  }
  if (manifest.tensor_count() != checkpoint.tensors().size() || !complaints.empty())
    name_missing(manifest, checkpoint, complaints);
  if (!complaints.empty()) return complaints.failure();
  return placement;
}

}  // namespace wc::api
