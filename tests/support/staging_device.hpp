// A device whose memory can't be read into: what goes there goes through staged blocks, as on a
// GPU, late and checked. A block that is touched while its copy is under way, or taken without
// waiting, shows as wrong bytes. Wraps any device of host memory.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <sys/mman.h>

#include "base/mapping.hpp"
#include "memory/device.hpp"

namespace wc::support {

class StagingDevice final : public memory::Device {
 public:
  explicit StagingDevice(std::unique_ptr<memory::Device> inner) : inner_(std::move(inner)) {}

  const memory::DeviceInfo& info() const override { return inner_->info(); }
  Result<std::uint64_t> free_bytes() override { return inner_->free_bytes(); }
  Result<std::unique_ptr<memory::Segment>> create(std::uint64_t bytes) override {
    return inner_->create(bytes);
  }
  Result<std::unique_ptr<memory::View>> map_at(memory::Segment& segment,
                                               std::uint64_t address) override {
    return inner_->map_at(segment, address);
  }
  Result<std::unique_ptr<memory::View>> import(memory::Handle handle,
                                               const memory::ImportOptions& options) override {
    return inner_->import(std::move(handle), options);
  }
  Result<std::unique_ptr<memory::Writer>> writer(std::span<memory::View* const> views,
                                                 std::uint64_t block_bytes) override {
    if (fails()) return fail(Code::device, "writer number {} fails", calls_.load());
    auto inner = TRY(inner_->writer(views, block_bytes));
    return std::make_unique<StagingWriter>(*this, std::move(inner), block_bytes);
  }

  /// The n-th call of a writer (making one, stage, copy_in, finish, copy_out) fails; 0: none.
  void fail_at(std::uint64_t call) {
    fail_at_ = call;
    calls_ = 0;
  }
  [[nodiscard]] std::uint64_t calls() const { return calls_; }
  /// Single copies made by copy_in and copy_out so far.
  [[nodiscard]] std::uint64_t copies() const { return copies_; }

 private:
  class StagingWriter final : public memory::Writer {
   public:
    StagingWriter(StagingDevice& device, std::unique_ptr<memory::Writer> inner,
                  std::uint64_t block_bytes)
        : device_(device), inner_(std::move(inner)), block_bytes_(block_bytes) {
      for (auto& block : ring_) {
        block.memory = Mapping::map(FdView(), {.bytes = block_bytes,
                                               .protection = PROT_READ | PROT_WRITE,
                                               .flags = MAP_PRIVATE | MAP_ANONYMOUS})
                           .value();
      }
    }

    Result<std::span<std::byte>> stage(std::uint64_t bytes) override {
      if (device_.fails()) return fail(Code::device, "stage fails");
      if (bytes > block_bytes_) return fail(Code::invalid_argument, "a block too large");
      at_ = (at_ + 1) % ring_.size();
      TRY(flush(ring_.at(at_)));
      std::memset(ring_.at(at_).memory.data(), 0xCC, block_bytes_);
      return ring_.at(at_).memory.bytes();
    }
    std::span<std::byte> place(std::uint32_t, std::uint64_t, std::uint64_t) override { return {}; }
    Result<> copy_in(std::span<const std::byte> block, std::span<const memory::Run> runs) override {
      if (device_.fails()) return fail(Code::device, "copy_in fails");
      device_.copies_ += runs.size();
      Block& own = ring_.at(at_);
      if (block.data() != own.memory.data()) return inner_->copy_in(block, runs);
      own.pending.insert(own.pending.end(), runs.begin(), runs.end());
      return {};
    }
    Result<> copy_out(std::uint32_t segment, std::uint64_t offset,
                      std::span<std::byte> to) override {
      if (device_.fails()) return fail(Code::device, "copy_out fails");
      ++device_.copies_;
      return inner_->copy_out(segment, offset, to);
    }
    Result<> finish() override {
      if (device_.fails()) return fail(Code::device, "finish fails");
      for (auto& block : ring_) TRY(flush(block));
      return inner_->finish();
    }

   private:
    struct Block {
      Mapping memory;
      std::vector<memory::Run> pending;
    };

    // Copies happen as late as they may: at the next use of the block, or at the end.
    Result<> flush(Block& block) {
      const auto runs = std::exchange(block.pending, {});
      return inner_->copy_in(block.memory.bytes(), runs);
    }

    StagingDevice& device_;
    std::unique_ptr<memory::Writer> inner_;
    std::uint64_t block_bytes_;
    std::array<Block, 2> ring_;
    std::size_t at_ = 0;
  };

  bool fails() { return ++calls_ == fail_at_.load(); }

  std::unique_ptr<memory::Device> inner_;
  std::atomic<std::uint64_t> fail_at_ = 0;
  std::atomic<std::uint64_t> calls_ = 0;
  std::atomic<std::uint64_t> copies_ = 0;
};

}  // namespace wc::support
