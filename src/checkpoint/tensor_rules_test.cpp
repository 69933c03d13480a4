// Rules 13 to 22: what a tensor says of itself, and where it lies.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/header.hpp"
#include "checkpoint/header_case_test.hpp"
#include "checkpoint/layout.hpp"
#include "checkpoint/test_files.hpp"

namespace wc::checkpoint {
namespace {

using testing::file_of;
using ::testing::HasSubstr;
using testing::member;
using testing::u8;

struct Parts {
  std::string_view dtype = R"("U8")";
  std::string_view shape = "[4]";
  std::string_view offsets = "[0,4]";
};

std::string one(const Parts& parts, std::size_t data_bytes = 4) {
  return file_of("{" +
                     member("a", format(R"("dtype":{},"shape":{},"data_offsets":{})", parts.dtype,
                                        parts.shape, parts.offsets)) +
                     "}",
                 data_bytes);
}

TEST(TensorRulesTest, DtypeIsOfTheClosedSet) {
  for (const char* dtype : {"f32", "F8", "F32 ", "", "BF16\\u0000", "float32", "I128", "F8_E4M3FN",
                            "U4", "C128", "bool"}) {
    expect_refused(one({.dtype = format("\"{}\"", dtype)}), "tensor \"a\": its dtype \"");
  }
  expect_refused(one({.dtype = R"("f32")"}), "tensor \"a\": its dtype \"f32\" is unknown");
  expect_refused(one({.dtype = "3"}), "dtype is a number, not text");
  expect_refused(one({.dtype = "null"}), "dtype is null, not text");
  expect_refused(one({.dtype = R"(["U8"])"}), "dtype is an array, not text");
  expect_refused(one({.dtype = R"({"U8":null})"}), "dtype is an object, not text");
  expect_accepted(one({.dtype = R"("\u00558")"}));
}

TEST(TensorRulesTest, EveryDtypeHasItsSize) {
  for (unsigned number = 1; const auto dtype = dtype_numbered(number); ++number) {
    const std::string quoted_name = format("\"{}\"", name_of(*dtype));
    const std::size_t bytes = bits_of(*dtype);
    expect_accepted(
        one({.dtype = quoted_name, .shape = "[8]", .offsets = format("[0,{}]", bytes)}, bytes));
    expect_refused(
        one({.dtype = quoted_name, .shape = "[8]", .offsets = format("[0,{}]", bytes + 1)},
            bytes + 1),
        "takes " + format("{}", bytes));
  }
}

TEST(TensorRulesTest, ShapeIsAnArrayOfPlainIntegers) {
  expect_refused(one({.shape = R"("4")"}), "shape is text, not an array of integers");
  expect_refused(one({.shape = "4"}), "shape is a number, not an array");
  expect_refused(one({.shape = "{}"}), "shape is an object, not an array");
  expect_refused(one({.shape = "null"}), "shape is null, not an array");
  expect_refused(one({.shape = R"(["4"])"}), "a dimension of shape is text, not an integer");
  expect_refused(one({.shape = "[null]"}), "a dimension of shape is null, not an integer");
  expect_refused(one({.shape = "[[4]]"}), "nested deeper than 3 levels");
  for (const char* bad : {"1.0", "4e0", "1e1", "-1", "-0", "4.", "04", "00", "4E+0", "0x4", "4a"}) {
    expect_refused(one({.shape = format("[{}]", bad)}),
                   format("a dimension of shape is \"{}\", not an integer in plain digits", bad));
  }
  expect_refused(one({.shape = "[18446744073709551616]"}), "past 9,223,372,036,854,775,807");
  expect_refused(one({.shape = "[9223372036854775808,0]"}), "past 9,223,372,036,854,775,807");
  expect_refused(one({.shape = "[1e400]"}), "not an integer in plain digits");
  expect_refused(one({.shape = "[" + std::string(5000, '9') + "]"}), "... (5,000 bytes)");
}

TEST(TensorRulesTest, RankIsBounded) {
  std::string ones = "[4";
  for (int at = 1; at < 64; ++at) ones += ",1";
  expect_accepted(one({.shape = ones + "]"}));
  expect_refused(one({.shape = ones + ",1]"}), "tensor \"a\": shape has more than 64 dimensions");
  for (int at = 0; at < 1'000'000; ++at) ones += ",1";
  expect_refused(one({.shape = ones + "]"}), "shape has more than 64 dimensions");
}

TEST(TensorRulesTest, ScalarsAndZeroDimensionsAreLegal) {
  expect_accepted(one({.dtype = R"("F32")", .shape = "[]"}));
  expect_accepted(one({.shape = "[0]", .offsets = "[0,0]"}, 0));
  expect_accepted(one({.shape = "[0,9223372036854775807]", .offsets = "[0,0]"}, 0));
  expect_refused(one({.shape = "[0]"}), "span 4 bytes, but U8 of shape [0] takes 0");
  expect_refused(one({.shape = "[0]", .offsets = "[1,1]"}, 0),
                 "data_offsets end 1 is past the data's length 0");
}

TEST(TensorRulesTest, ProductsDoNotWrap) {
  // 2^32 * 2^32 wraps to zero in 64 bits; so do the bits of 2^61 elements of 8 bytes.
  expect_refused(one({.shape = "[4294967296,4294967296]", .offsets = "[0,0]"}, 0),
                 "shape [4294967296, 4294967296]: the product of the dimensions is past 2^63 - 1");
  expect_refused(one({.shape = "[4294967296,0,4294967296]", .offsets = "[0,0]"}, 0),
                 "the product of the dimensions is past 2^63 - 1");
  expect_refused(one({.shape = "[4611686018427387904,2]", .offsets = "[0,0]"}, 0), "past 2^63 - 1");
  expect_refused(
      one({.dtype = R"("F64")", .shape = "[2305843009213693952]", .offsets = "[0,0]"}, 0),
      "2,305,843,009,213,693,952 elements of 64 bits each are more bits than 2^64 - 1");
  expect_refused(one({.shape = "[4294967296,4294967296,4]"}), "past 2^63 - 1");
}

TEST(TensorRulesTest, BitsFillWholeBytes) {
  expect_refused(one({.dtype = R"("F4")", .shape = "[7]"}),
                 "7 elements of F4 (4 bits each) do not fill whole bytes");
  expect_accepted(one({.dtype = R"("F4")", .shape = "[8]"}));
  expect_refused(one({.dtype = R"("F6_E2M3")", .shape = "[5]"}), "5 elements of F6_E2M3 (6 bits");
  expect_accepted(one({.dtype = R"("F6_E3M2")", .shape = "[4]", .offsets = "[0,3]"}, 3));
}

TEST(TensorRulesTest, OffsetsAreTwoPlainIntegers) {
  expect_refused(one({.offsets = "[0]"}), "data_offsets has one of two entries");
  expect_refused(one({.offsets = "[]"}), "data_offsets has none of two entries");
  expect_refused(one({.offsets = "[0,4,4]"}), "data_offsets has more than two entries");
  expect_refused(one({.offsets = "4"}), "data_offsets is a number, not an array of two integers");
  expect_refused(one({.offsets = R"({"begin":0,"end":4})"}), "data_offsets is an object");
  expect_refused(one({.offsets = "[0,4.0]"}), "data_offsets end is \"4.0\", not an integer");
  expect_refused(one({.offsets = "[-0,4]"}), "data_offsets begin is \"-0\", not an integer");
  expect_refused(one({.offsets = R"([0,"4"])"}), "data_offsets end is text, not an integer");
  expect_refused(one({.offsets = "[0,18446744073709551616]"}),
                 "data_offsets end is \"18446744073709551616\", past 18,446,744,073,709,551,615");
}

TEST(TensorRulesTest, OffsetsFitTheDataAndTheShape) {
  expect_refused(one({.offsets = "[4,0]"}),
                 "tensor \"a\": data_offsets begin 4 is past their end 0");
  expect_refused(one({.offsets = "[0,5]"}), "data_offsets end 5 is past the data's length 4");
  expect_refused(one({.offsets = "[18446744073709551615,18446744073709551615]"}),
                 "end 18,446,744,073,709,551,615 is past the data's length 4");
  expect_refused(one({.offsets = "[0,3]"}),
                 "data_offsets [0, 3] span 3 bytes, but U8 of shape [4] takes 4");
  expect_refused(one({}, 3), "data_offsets end 4 is past the data's length 3");
}

TEST(TensorRulesTest, TensorsCoverTheDataWithoutHoleOrOverlap) {
  const auto two = [](const std::string& first, const std::string& second, std::size_t bytes) {
    return file_of("{" + first + "," + second + "}", bytes);
  };
  expect_accepted(two(u8("b", 4, 8), u8("a", 0, 4), 8));
  expect_refused(two(u8("a", 0, 4), u8("b", 2, 6), 6),
                 "tensor \"b\": its bytes 2 to 6 overlap those of tensor \"a\", 0 to 4");
  expect_refused(two(u8("a", 0, 4), u8("b", 0, 4), 4), "0 to 4 overlap those of tensor");
  expect_refused(two(u8("a", 0, 8), u8("b", 2, 4), 8), "overlap");
  expect_refused(two(u8("a", 1, 4), u8("b", 4, 8), 8),
                 "tensor \"a\": a hole before it: bytes 0 to 1 of the data belong to no tensor");
  expect_refused(two(u8("a", 0, 4), u8("b", 5, 8), 8),
                 "tensor \"b\": a hole before it: bytes 4 to 5");
  expect_refused(two(u8("a", 0, 4), u8("b", 4, 8), 9),
                 "1 bytes of data after the last tensor, \"b\", belong to no tensor (8 to 9");
  expect_refused(two(u8("a", 0, 4), u8("b", 2, 2), 4), "tensor \"b\": its bytes 2 to 2 overlap");
}

TEST(TensorRulesTest, TensorsWithoutBytesMayShareAPlace) {
  const std::string header = "{" + u8("z", 0, 0) + "," + u8("c", 4, 8) + "," + u8("y", 4, 4) + "," +
                             u8("b", 0, 4) + "," + u8("x", 4, 4) + "," + u8("w", 8, 8) + "}";
  const auto table = parse_header(file_of(header, 8));
  ASSERT_TRUE(table) << table.error().message;
  std::string order;
  for (const auto& tensor : table->tensors) order += tensor.name;
  EXPECT_EQ(order, "zbxycw");
}

TEST(TensorRulesTest, TrailingBytesArePassedOverByOrder) {
  const std::string file = file_of("{" + u8("a", 0, 4) + "}", 7);
  expect_refused(file, "3 bytes of data after the last tensor, \"a\"");
  const auto table = parse_header(file, {.allow_trailing = true});
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->trailing_bytes, 3U);
  const auto empty = parse_header(file_of("{}", 5), {.allow_trailing = true});
  ASSERT_TRUE(empty);
  EXPECT_EQ(empty->trailing_bytes, 5U);
}

}  // namespace
}  // namespace wc::checkpoint
