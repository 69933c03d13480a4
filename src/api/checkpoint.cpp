// Checkpoints on disk, without a daemon: what the reader found, as the ABI shows it.
#include "checkpoint/checkpoint.hpp"

#include <numeric>
#include <utility>

#include "weightcache/weightcache.h"

#include "api/guard.hpp"
#include "api/structs.hpp"
#include "base/units.hpp"

struct wc_checkpoint {
  wc::checkpoint::Checkpoint opened;
};

namespace wc::api {
namespace {

wc_checkpoint_info info_of(const checkpoint::Checkpoint& opened) {
  wc_checkpoint_info info{};
  info.directory = opened.directory().c_str();
  info.default_name = opened.default_name().c_str();
  info.files = opened.shards().size();
  info.tensors = opened.tensors().size();
  info.file_bytes = opened.file_bytes();
  info.tensor_bytes = opened.tensor_bytes();
  for (const auto& shard : opened.shards()) info.passed_over += shard.passed_over;
  return info;
}

wc_file_tensor tensor_of(const checkpoint::Checkpoint& opened, std::size_t index) {
  const checkpoint::Tensor& tensor = opened.tensors()[index];
  wc_file_tensor out{};
  out.name = tensor.name.data();
  out.name_bytes = tensor.name.size();
  out.shape = tensor.shape.data();
  out.rank = static_cast<std::uint32_t>(tensor.shape.size());
  out.dtype = static_cast<std::int32_t>(tensor.dtype);
  out.file = opened.shards()[tensor.shard].name.c_str();
  out.offset = tensor.offset;
  out.bytes = tensor.bytes;
  return out;
}

}  // namespace
}  // namespace wc::api

using wc::Result;
using wc::api::give_struct;
using wc::api::guarded;
using wc::api::required;

extern "C" {

int wc_checkpoint_open(const char* source, const wc_checkpoint_options* options,
                       wc_checkpoint** out) {
  return guarded([&]() -> Result<> {
    TRY(required(out, "out"));
    *out = nullptr;
    TRY(required(source, "source"));
    const auto known = TRY(wc::api::take_struct_or_default(options, "wc_checkpoint_options"));
    wc::checkpoint::OpenOptions reading;
    reading.compat = known.compat != 0;
    reading.allow_trailing = known.allow_trailing != 0;
    reading.follow_symlinks = known.follow_symlinks != 0;
    auto opened = TRY(wc::checkpoint::Checkpoint::open(source, reading));
    *out = new wc_checkpoint{std::move(opened)};
    return {};
  });
}

void wc_checkpoint_free(wc_checkpoint* checkpoint) { delete checkpoint; }

int wc_checkpoint_read(const wc_checkpoint* checkpoint, wc_checkpoint_info* out) {
  return guarded([&]() -> Result<> {
    TRY(required(checkpoint, "checkpoint"));
    return give_struct(out, wc::api::info_of(checkpoint->opened), "wc_checkpoint_info");
  });
}

int wc_checkpoint_tensor_at(const wc_checkpoint* checkpoint, size_t index, wc_file_tensor* out) {
  return guarded([&]() -> Result<> {
    TRY(required(checkpoint, "checkpoint"));
    TRY(wc::api::check_index(index, checkpoint->opened.tensors().size(), "tensor", "checkpoint"));
    return give_struct(out, wc::api::tensor_of(checkpoint->opened, index), "wc_file_tensor");
  });
}

int wc_checkpoint_file_at(const wc_checkpoint* checkpoint, size_t index, const char** name,
                          uint64_t* bytes) {
  return guarded([&]() -> Result<> {
    TRY(required(checkpoint, "checkpoint"));
    TRY(wc::api::check_index(index, checkpoint->opened.shards().size(), "file", "checkpoint"));
    const auto& shard = checkpoint->opened.shards()[index];
    if (name != nullptr) *name = shard.name.c_str();
    if (bytes != nullptr) *bytes = shard.receipt.size_bytes;
    return {};
  });
}

}  // extern "C"
