// XXH3-128 of one block that arrives in pieces, by the fastest code that this processor runs.
// One thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "load/hash_kernel.hpp"

namespace wc::load {

class BlockHash {
 public:
  explicit BlockHash(const HashKernel& kernel = best_hash_kernel()) : kernel_(&kernel) { reset(); }

  void reset() { kernel_->reset(state_.data()); }
  void update(std::span<const std::byte> bytes) {
    kernel_->update(state_.data(), bytes.data(), bytes.size());
  }
  /// Canonical: big-endian, the high half first.
  [[nodiscard]] std::array<std::byte, 16> finish() const {
    std::array<std::byte, 16> canonical = {};
    kernel_->finish(state_.data(), canonical.data());
    return canonical;
  }

 private:
  const HashKernel* kernel_;
  alignas(kHashStateAlignment) std::array<std::byte, kHashStateBytes> state_ = {};
};

}  // namespace wc::load
