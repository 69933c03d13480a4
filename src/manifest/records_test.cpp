#include "manifest/records.hpp"

#include <random>

#include <gtest/gtest.h>

namespace wc::manifest {
namespace {

using Dimensions = std::vector<std::int64_t>;

// The furthest element by visiting every one.
std::uint64_t furthest(const Dimensions& shape, const Dimensions& strides, std::size_t at = 0) {
  if (at == shape.size()) return 0;
  std::uint64_t most = 0;
  for (std::int64_t index = 0; index < shape[at]; ++index) {
    const auto here = static_cast<std::uint64_t>(index * strides[at]);
    most = std::max(most, here + furthest(shape, strides, at + 1));
  }
  return most;
}

TEST(RecordsTest, TheExtentIsThatOfTheFurthestElement) {
  const unsigned seed = 7;
  std::mt19937 random(seed);
  for (int round = 0; round < 2000; ++round) {
    Dimensions shape(random() % 5);
    Dimensions strides(shape.size());
    bool empty = false;
    for (std::size_t at = 0; at < shape.size(); ++at) {
      shape[at] = random() % 5;
      strides[at] = random() % 30;
      empty |= shape[at] == 0;
    }
    const Extent extent = strided_extent(shape, strides, 16);
    ASSERT_EQ(extent.rule, Rule::kept);
    ASSERT_EQ(extent.bytes, empty ? 0 : 2 * (furthest(shape, strides) + 1)) << "seed " << seed;
  }
}

TEST(RecordsTest, AContiguousExtentIsThatOfRowMajorStrides) {
  std::mt19937 random(8);
  for (int round = 0; round < 2000; ++round) {
    Dimensions shape(random() % 6);
    for (auto& size : shape) size = random() % 4;
    Dimensions strides(shape.size());
    std::int64_t step = 1;
    for (std::size_t at = shape.size(); at-- > 0;) {
      strides[at] = step;
      step *= std::max<std::int64_t>(shape[at], 1);
    }
    ASSERT_TRUE(row_major(shape, strides));
    ASSERT_EQ(contiguous_extent(shape, 32).bytes, strided_extent(shape, strides, 32).bytes);
    if (!shape.empty()) {
      strides[random() % shape.size()] += 1;
      ASSERT_FALSE(row_major(shape, strides));
    }
  }
}

TEST(RecordsTest, RowMajorStridesThatWrapAreNotRowMajor) {
  const std::int64_t half = std::int64_t{1} << 32;
  EXPECT_FALSE(row_major(Dimensions{2, half, half}, Dimensions{0, half, 1}));
}

TEST(RecordsTest, EveryDtypeHasItsBits) {
  const DtypeBits bits;
  for (unsigned number = 0; number < 256; ++number) {
    const auto dtype = dtype_numbered(number);
    EXPECT_EQ(bits[static_cast<std::uint8_t>(number)], dtype ? bits_of(*dtype) : 0) << number;
  }
}

TEST(RecordsTest, ARangeIsWithinByItsEndWithoutWrapping) {
  const std::uint64_t most = ~std::uint64_t{0};
  EXPECT_TRUE(within(0, 0, 0));
  EXPECT_TRUE(within(10, 0, 10));
  EXPECT_TRUE(within(4, 6, 10));
  EXPECT_FALSE(within(5, 6, 10));
  EXPECT_FALSE(within(11, 0, 10));
  EXPECT_FALSE(within(most, 1, 10));
  EXPECT_FALSE(within(1, most, most));
  EXPECT_TRUE(within(0, most, most));
}

fb::TensorRecord at(std::uint64_t offset, std::uint64_t bytes, std::uint8_t flags = 0,
                    std::uint16_t segment = 0) {
  return {offset, bytes, 0, 0, 0, 0, kContiguous, segment, 0, 1, 0, flags, 0, 0, 0};
}

using Records = std::vector<fb::TensorRecord>;

TEST(RecordsTest, AViewStartsInsideATensorOnABoundary) {
  EXPECT_EQ(misaligned(Records{at(512, 100), at(513, 1), at(611, 500)}), std::nullopt);
  EXPECT_EQ(misaligned(Records{at(611, 5), at(513, 1), at(512, 100)}), std::nullopt);
  EXPECT_EQ(misaligned(Records{at(0, 2000), at(512, 10), at(1999, 1)}), std::nullopt);
  EXPECT_EQ(misaligned(Records{at(512, 100), at(612, 1)}), 1U);
  EXPECT_EQ(misaligned(Records{at(511, 1), at(512, 100)}), 0U);
  EXPECT_EQ(misaligned(Records{at(0, 10), at(5, 100), at(50, 1)}), 2U);  // in a view only
  EXPECT_EQ(misaligned(Records{at(0, 1000, 0, 0), at(5, 1, 0, 1)}), 1U);
}

TEST(RecordsTest, WhatHasNoBytesOrSaysThatItIsAViewStartsAnywhere) {
  EXPECT_EQ(misaligned(Records{at(7, 0), at(9, 8, kFlagView)}), std::nullopt);
  EXPECT_EQ(misaligned(Records{at(9, 8, kFlagView), at(10, 1)}), 1U);
}

}  // namespace
}  // namespace wc::manifest
