#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "load/fill.hpp"
#include "tests/support/loading.hpp"

namespace wc::load {
namespace {

using support::Loading;

class CompareTest : public testing::TestWithParam<bool> {
 protected:
  CompareTest() : loading_(support::odd_shards(), make_device()) {
    const auto filled = loading_.fill();
    EXPECT_TRUE(filled) << filled.error().message;
  }

  std::unique_ptr<memory::Device> make_device() {
    if (!GetParam()) return support::open_host();
    auto device = std::make_unique<support::StagingDevice>(support::open_host());
    staging_ = device.get();
    return device;
  }

  // Another byte at this place of a tensor.
  void spoil(std::uint32_t tensor, std::uint64_t offset) {
    const auto& placed = loading_.placement().tensors[tensor];
    std::byte byte = {};
    support::tensor_bytes(loading_.checkpoint().tensors()[tensor].name, offset, &byte, 1);
    byte ^= std::byte{1};
    loading_.put(loading_.views()[placed.segment], placed.offset + offset, std::span(&byte, 1));
  }

  std::uint32_t named(std::string_view name) {
    const auto tensors = loading_.checkpoint().tensors();
    for (std::uint32_t n = 0; n < tensors.size(); ++n) {
      if (tensors[n].name == name) return n;
    }
    ADD_FAILURE() << "no tensor " << name;
    return 0;
  }

  support::StagingDevice* staging_ = nullptr;
  Loading loading_;
};

INSTANTIATE_TEST_SUITE_P(Devices, CompareTest, testing::Bool(),
                         [](const auto& tested) { return tested.param ? "Staged" : "InPlace"; });

MATCHER_P2(Mismatches, tensor, offset, "") { return arg.tensor == tensor && arg.offset == offset; }

TEST_P(CompareTest, WhatWasLoadedIsEqual) {
  for (const Tier tier : {Tier::hot, Tier::direct, Tier::buffered}) {
    const auto mismatches = loading_.compare(100, {.tier = tier});
    ASSERT_TRUE(mismatches) << mismatches.error().message;
    EXPECT_TRUE(mismatches->empty());
  }
}

TEST_P(CompareTest, ReadOnlyViewsServe) {
  ASSERT_TRUE(loading_.views()[0]->make_read_only());
  const auto mismatches = loading_.compare();
  ASSERT_TRUE(mismatches) << mismatches.error().message;
  EXPECT_TRUE(mismatches->empty());
}

TEST_P(CompareTest, EachTensorTellsItsFirstDifference) {
  const std::uint32_t large = named("a.8");
  const std::uint32_t small = named("b.1");
  const std::uint32_t last = named("b.large");
  spoil(large, 5'242'882);
  spoil(large, 4'500'000);
  spoil(large, 4'500'001);
  spoil(small, 0);
  spoil(last, 9'437'183);
  spoil(named("a.0"), 0);
  const auto mismatches = loading_.compare();
  ASSERT_TRUE(mismatches) << mismatches.error().message;
  EXPECT_THAT(*mismatches,
              testing::ElementsAre(Mismatches(named("a.0"), 0U), Mismatches(large, 4'500'000U),
                                   Mismatches(small, 0U), Mismatches(last, 9'437'183U)));
}

TEST_P(CompareTest, LimitKeepsTheFirst) {
  for (const char* name : {"b.7", "b.2", "b.100", "a.5"}) spoil(named(name), 1);
  const auto mismatches = loading_.compare(2);
  ASSERT_TRUE(mismatches);
  EXPECT_THAT(*mismatches,
              testing::ElementsAre(Mismatches(named("a.5"), 1U), Mismatches(named("b.2"), 1U)));
  EXPECT_TRUE(loading_.compare(0)->empty());
}

TEST_P(CompareTest, EveryTensorWithBytesIsCompared) {
  loading_.wipe();
  const auto mismatches = loading_.compare(10'000);
  ASSERT_TRUE(mismatches);
  std::size_t with_bytes = 0;
  for (const auto& tensor : loading_.checkpoint().tensors()) with_bytes += tensor.bytes > 8 ? 1 : 0;
  EXPECT_GE(mismatches->size(), with_bytes);
}

TEST_P(CompareTest, SmallTensorsCostNoCopyEach) {
  if (staging_ == nullptr) GTEST_SKIP() << "host memory is compared in place";
  const auto before = staging_->copies();
  ASSERT_TRUE(loading_.compare());
  EXPECT_LT(staging_->copies() - before, 50U) << "of 3,012 tensors";
}

TEST_P(CompareTest, FailuresAreErrorsNotMismatches) {
  loading_.files().restart();
  loading_.files().on_read = [](std::uint64_t number) -> std::optional<ssize_t> {
    return number == 2 ? std::optional<ssize_t>(-EIO) : std::nullopt;
  };
  const auto mismatches = loading_.compare(100, {.tier = Tier::hot});
  ASSERT_FALSE(mismatches);
  EXPECT_EQ(mismatches.error().code, Code::io);
}

}  // namespace
}  // namespace wc::load
