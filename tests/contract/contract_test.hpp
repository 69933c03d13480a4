// The fixture of the suite: a device, and the few steps that most cases begin with.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "tests/contract/device_contract.hpp"

namespace wc::contract {

class DeviceContract : public testing::TestWithParam<DeviceFactory> {
 protected:
  static constexpr std::uint64_t kBlock = std::uint64_t{1} << 20;

  void SetUp() override {
    auto opened = GetParam().open();
    ASSERT_TRUE(opened) << opened.error().message;
    device_ = std::move(*opened);
  }

  /// A segment that holds pattern(bytes, seed), no longer mapped.
  [[nodiscard]] std::unique_ptr<memory::Segment> filled(std::uint64_t bytes, std::uint64_t seed);
  /// Copies into a view, by one writer, in blocks.
  void copy_in(memory::View& view, std::uint64_t offset, std::span<const std::byte> bytes);
  [[nodiscard]] std::vector<std::byte> copy_out(memory::View& view, std::uint64_t offset,
                                                std::uint64_t bytes);
  /// Whether a view begins with pattern(bytes, seed).
  void expect_pattern(memory::View& view, std::uint64_t bytes, std::uint64_t seed);
  [[nodiscard]] std::uint64_t free_bytes();
  /// Whether free_bytes() comes within the factory's noise of `wanted`, or above it, in time.
  [[nodiscard]] bool comes_back_to(std::uint64_t wanted);
  [[nodiscard]] memory::Device& device() { return *device_; }

 private:
  std::unique_ptr<memory::Device> device_;
};

/// Descriptors of this process.
[[nodiscard]] std::size_t open_descriptors();

}  // namespace wc::contract
