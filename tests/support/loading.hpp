// A checkpoint on disk and the memory that it is loaded into: what the tests of loading begin with.
#pragma once

#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "checkpoint/checkpoint.hpp"
#include "load/load_run.hpp"
#include "tests/support/file_hooks.hpp"
#include "tests/support/host.hpp"
#include "tests/support/make_checkpoint.hpp"
#include "tests/support/staging_device.hpp"
#include "tests/support/temp_folder.hpp"

namespace wc::support {

/// Sizes that break every rule of thumb: nothing, one byte, just beside 512 and 4,096, larger than
/// a block, many small ones; headers that put the data at odd offsets.
[[nodiscard]] inline std::vector<MadeShard> odd_shards() {
  MadeShard first = {.name = "model-00001-of-00002.safetensors", .tensors = {}, .header_spaces = 3};
  MadeShard second = {
      .name = "model-00002-of-00002.safetensors", .tensors = {}, .header_spaces = 1};
  for (const std::uint64_t bytes :
       {1U, 0U, 511U, 512U, 513U, 4095U, 4096U, 4097U, 5'242'883U, 0U, 7U}) {
    first.tensors.push_back(made_tensor(format("a.{}", first.tensors.size()), bytes));
  }
  for (std::uint64_t n = 0; n < 3000; ++n) {
    second.tensors.push_back(made_tensor(format("b.{}", n), n % 700));
  }
  second.tensors.push_back(made_tensor("b.large", 9'437'184));
  return {first, second};
}

class Loading {
 public:
  Loading(const std::vector<MadeShard>& shards, std::unique_ptr<memory::Device> device)
      : shards_(shards), device_(std::move(device)) {
    open(write_checkpoint(folder_.path() / "checkpoint", shards_));
  }

  [[nodiscard]] checkpoint::Checkpoint& checkpoint() { return *checkpoint_; }
  [[nodiscard]] const load::Placement& placement() const { return placement_; }
  [[nodiscard]] std::span<memory::View* const> views() const { return views_; }
  [[nodiscard]] memory::Device& device() { return *device_; }
  [[nodiscard]] FileHooks& files() { return files_; }
  [[nodiscard]] load::MountMemory& mounts() { return mounts_; }
  [[nodiscard]] std::string path(const std::string& shard) const {
    return (folder_.path() / "checkpoint" / shard).string();
  }
  [[nodiscard]] const std::vector<MadeShard>& shards() const { return shards_; }

  [[nodiscard]] load::LoadParts parts() { return {*checkpoint_, placement_, *device_, views_}; }
  [[nodiscard]] Result<load::FillResult> fill(const load::FillOptions& options = {}) {
    return load::fill_in({files_, mounts_}, parts(), options);
  }
  [[nodiscard]] Result<std::vector<load::Mismatch>> compare(std::size_t limit = 100,
                                                            const load::FillOptions& options = {}) {
    return load::compare_in({files_, mounts_}, parts(), limit, options);
  }

  /// Opens the files as they are now, with memory of their own.
  void reopen() {
    views_.clear();
    owned_views_.clear();
    segments_.clear();
    open(checkpoint_->directory());
  }

  /// Overwrites every segment, so that what a load leaves out shows.
  void wipe() {
    for (memory::View* const view : views_) {
      std::vector<std::byte> other(view->bytes(), std::byte{0xAB});
      put(view, 0, other);
    }
  }
  /// Bytes straight into a view's segment.
  void put(memory::View* view, std::uint64_t offset, std::span<const std::byte> bytes) {
    auto writer = device_->writer(std::span(&view, 1), bytes.size());
    ASSERT_TRUE(writer) << writer.error().message;
    const memory::Run run = {.segment_offset = offset, .bytes = bytes.size()};
    ASSERT_TRUE((*writer)->copy_in(bytes, std::span(&run, 1)));
    ASSERT_TRUE((*writer)->finish());
  }
  /// Whether every tensor's bytes are those of its name.
  void expect_loaded() {
    auto writer = device_->writer(views_, std::uint64_t{1} << 20);
    ASSERT_TRUE(writer) << writer.error().message;
    for (std::size_t n = 0; n < placement_.tensors.size(); ++n) {
      const auto& tensor = checkpoint_->tensors()[n];
      std::vector<std::byte> wanted(tensor.bytes);
      tensor_bytes(tensor.name, 0, wanted.data(), wanted.size());
      std::vector<std::byte> seen(tensor.bytes);
      const auto& placed = placement_.tensors[n];
      ASSERT_TRUE((*writer)->copy_out(placed.segment, placed.offset, seen));
      ASSERT_EQ(seen, wanted) << "tensor \"" << tensor.name << "\"";
    }
  }
  /// The page cache gives the files up.
  void drop_caches() {
    for (const auto& shard : checkpoint_->shards()) {
      ASSERT_EQ(::fdatasync(shard.fd.get()), 0);
      ASSERT_EQ(::posix_fadvise(shard.fd.get(), 0, 0, POSIX_FADV_DONTNEED), 0);
    }
  }

 private:
  void open(const std::string& path) {
    auto opened = checkpoint::Checkpoint::open(path);
    ASSERT_TRUE(opened) << opened.error().message;
    checkpoint_.emplace(std::move(*opened));
    auto placed = load::place(*checkpoint_, {.granularity = device_->info().granularity_bytes});
    ASSERT_TRUE(placed) << placed.error().message;
    placement_ = std::move(*placed);
    for (const std::uint64_t bytes : placement_.segment_bytes) {
      auto segment = device_->create(bytes);
      ASSERT_TRUE(segment) << segment.error().message;
      auto view = device_->map(**segment);
      ASSERT_TRUE(view) << view.error().message;
      segments_.push_back(std::move(*segment));
      owned_views_.push_back(std::move(*view));
      views_.push_back(owned_views_.back().get());
    }
  }

  TempFolder folder_;
  FileHooks files_;
  load::MountMemory mounts_;
  std::vector<MadeShard> shards_;
  std::unique_ptr<memory::Device> device_;
  std::optional<checkpoint::Checkpoint> checkpoint_;
  load::Placement placement_;
  std::vector<std::unique_ptr<memory::Segment>> segments_;
  std::vector<std::unique_ptr<memory::View>> owned_views_;
  std::vector<memory::View*> views_;
};

/// A whole file.
[[nodiscard]] inline std::vector<std::byte> file_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const auto* const first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

}  // namespace wc::support
