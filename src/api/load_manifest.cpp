#include "api/load_manifest.hpp"

#include <map>
#include <utility>

#include "api/process.hpp"
#include "base/log.hpp"
#include "manifest/limits.hpp"

namespace wc::api {
namespace {

constexpr std::string_view kMetadataPrefix = "safetensors.";

Result<> add_segments(const LoadedCheckpoint& loaded, manifest::Builder& builder) {
  const load::Placement& placement = loaded.placement;
  for (std::size_t i = 0; i < placement.segment_bytes.size(); ++i) {
    manifest::SegmentOptions segment;
    segment.bytes = placement.segment_bytes[i];
    segment.used_bytes = placement.used_bytes[i];
    if (!loaded.addresses.empty()) segment.address = loaded.addresses[i];
    segment.flags = loaded.segment_flags;
    TRY(builder.add_segment(segment));
  }
  return {};
}

Result<> add_files(const LoadedCheckpoint& loaded, manifest::Builder& builder) {
  const auto shards = loaded.checkpoint.shards();
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const checkpoint::Receipt& receipt = shards[i].receipt;
    manifest::FileOptions file;
    file.name = shards[i].name;
    file.bytes = receipt.size_bytes;
    if (!loaded.digests.empty()) file.digest = loaded.digests[i];
    file.device = receipt.device;
    file.inode = receipt.inode;
    file.mtime_ns = receipt.mtime_ns;
    file.ctime_ns = receipt.ctime_ns;
    TRY(builder.add_file(file));
  }
  return {};
}

Result<> add_tensors(const LoadedCheckpoint& loaded, manifest::Builder& builder) {
  const auto tensors = loaded.checkpoint.tensors();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const checkpoint::Tensor& tensor = tensors[i];
    const load::PlacedTensor& place = loaded.placement.tensors[i];
    manifest::TensorOptions options;
    options.name = tensor.name;
    options.dtype = tensor.dtype;
    options.shape = tensor.shape;
    options.segment = place.segment;
    options.offset = place.offset;
    options.file = tensor.shard;
    options.file_offset = tensor.offset;
    TRY(builder.add_tensor(options));
  }
  return {};
}

// Key -> the values of the shards that have it.
using Metadata = std::map<std::string_view, std::vector<std::pair<std::string, std::string_view>>>;

bool agreed(const Metadata::mapped_type& values) {
  for (const auto& [shard, value] : values) {
    if (value != values.front().second) return false;
  }
  return true;
}

void set_metadata(manifest::Builder& builder, std::string name, std::string_view value) {
  manifest::AttributeOptions attribute;
  attribute.name = std::move(name);
  attribute.value = std::string(value);
  if (auto set = builder.set_attribute(attribute); !set)
    log(Level::warning, "metadata \"{}\" is left out: {}", attribute.name, set.error().message);
}

void add_metadata(const checkpoint::Checkpoint& checkpoint, manifest::Builder& builder) {
  Metadata all;
  for (const auto& shard : checkpoint.shards()) {
    for (const auto& pair : shard.metadata) all[pair.key].emplace_back(shard.name, pair.value);
  }
  for (const auto& [key, values] : all) {
    const std::string name = std::string(kMetadataPrefix).append(key);
    if (agreed(values)) {
      set_metadata(builder, name, values.front().second);
      continue;
    }
    for (const auto& [shard, value] : values) set_metadata(builder, name + "@" + shard, value);
  }
}

}  // namespace

Result<manifest::Builder> manifest_of(const LoadedCheckpoint& loaded) {
  manifest::Builder builder;
  TRY(add_segments(loaded, builder));
  TRY(add_files(loaded, builder));
  TRY(add_tensors(loaded, builder));
  add_metadata(loaded.checkpoint, builder);
  builder.set_provenance(loaded.provenance);
  return builder;
}

manifest::ProvenanceOptions provenance_of_this_process() {
  manifest::ProvenanceOptions provenance;
  provenance.publisher = software_name();
  provenance.command = command_line();
  provenance.host = host_name();
  provenance.published_unix_ns = unix_now_ns();
  return provenance;
}

}  // namespace wc::api
