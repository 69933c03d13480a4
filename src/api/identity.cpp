#include "api/identity.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace wc::api {
namespace {

bool passes_tensors_over(const checkpoint::Checkpoint& checkpoint) {
  return std::ranges::any_of(checkpoint.shards(),
                             [](const auto& shard) { return shard.passed_over > 0; });
}

std::string selection_of(const checkpoint::Checkpoint& checkpoint) {
  std::vector<manifest::SelectedTensor> selected;
  selected.reserve(checkpoint.tensors().size());
  for (const auto& tensor : checkpoint.tensors())
    selected.push_back({tensor.name, checkpoint.shards()[tensor.shard].name});
  return manifest::selection_digest(selected);
}

}  // namespace

std::string structure_of(const checkpoint::Checkpoint& checkpoint) {
  std::vector<const checkpoint::Tensor*> sorted;
  sorted.reserve(checkpoint.tensors().size());
  for (const auto& tensor : checkpoint.tensors()) sorted.push_back(&tensor);
  std::ranges::sort(sorted, {}, [](const auto* tensor) { return tensor->name; });

  std::string list;
  for (const auto* tensor : sorted) {
    list += format("{}:{};{};{};", tensor->name.size(), tensor->name, name_of(tensor->dtype),
                   tensor->bytes);
    for (const std::int64_t dimension : tensor->shape) list += format("{},", dimension);
    list += '\n';
  }
  return manifest::digest_of(list);
}

manifest::Fingerprint fingerprint_of(const checkpoint::Checkpoint& checkpoint,
                                     std::span<const std::string> digests) {
  std::vector<manifest::SourceShard> shards;
  const auto files = checkpoint.shards();
  shards.reserve(files.size());
  for (std::size_t i = 0; i < files.size(); ++i)
    shards.push_back({files[i].name, files[i].receipt.size_bytes, digests[i]});
  manifest::Fingerprint fingerprint = manifest::raw_fingerprint(std::move(shards));
  if (passes_tensors_over(checkpoint)) fingerprint.source.selection = selection_of(checkpoint);
  return fingerprint;
}

}  // namespace wc::api
