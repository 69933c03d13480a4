// Rules 1 to 12 and 26: the file, its header, JSON, names. What a tensor says of itself, and where
// it lies, is in tensor_rules_test.cpp.
#include "checkpoint/header.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/header_case_test.hpp"
#include "checkpoint/test_files.hpp"

namespace wc::checkpoint {
namespace {

using testing::file_of;
using ::testing::HasSubstr;
using testing::length_field;
using testing::member;
using testing::u8;

const std::string kFields = R"("dtype":"U8","shape":[4],"data_offsets":[0,4])";
const std::string kGood = "{" + member("a", kFields) + "}";

TEST(HeaderTest, ReadsNamesTypesShapesAndPlaces) {
  const std::string header = R"({"__metadata__":{"format":"pt"},)"
                             R"("b":{"dtype":"BF16","shape":[2,3],"data_offsets":[8,20]},)"
                             R"("a":{"shape":[],"data_offsets":[0,8],"dtype":"I64"}} )";
  const auto table = parse_header(file_of(header, 20));
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->data_offset, 8 + header.size());
  EXPECT_EQ(table->trailing_bytes, 0U);
  ASSERT_EQ(table->metadata.size(), 1U);
  EXPECT_EQ(table->metadata[0].key, "format");
  EXPECT_EQ(table->metadata[0].value, "pt");
  ASSERT_EQ(table->tensors.size(), 2U);
  EXPECT_EQ(table->tensors[0].name, "a");
  EXPECT_EQ(table->tensors[0].dtype, Dtype::i64);
  EXPECT_TRUE(table->tensors[0].shape.empty());
  EXPECT_EQ(table->tensors[1].name, "b");
  EXPECT_EQ(table->tensors[1].dtype, Dtype::bf16);
  ASSERT_EQ(table->tensors[1].shape.size(), 2U);
  EXPECT_EQ(table->tensors[1].shape[1], 3);
  EXPECT_EQ(table->tensors[1].begin, 8U);
  EXPECT_EQ(table->tensors[1].end, 20U);
}

TEST(HeaderTest, TableOutlivesItsParserAndItsBytes) {
  Result<Header> table = fail(Code::internal, "unread");
  {
    std::string file = file_of("{" + member("abc\\u0041", kFields) + "}", 4);
    table = parse_header(file);
    file.assign(file.size(), '\0');
  }
  ASSERT_TRUE(table);
  EXPECT_EQ(table->tensors[0].name, "abcA");
  EXPECT_EQ(table->tensors[0].shape[0], 4);
}

TEST(HeaderTest, RefusesWhatIsShorterThanALength) {
  expect_refused("", "it is 0 bytes long, too short for the header's length (8 bytes)");
  expect_refused("1234567", "it is 7 bytes long");
}

TEST(HeaderTest, RefusesALengthThatDoesNotFit) {
  expect_refused(length_field(0), "length 0 is too short for an object");
  expect_refused(length_field(1) + "{", "length 1 is too short for an object");
  expect_refused(length_field(2) + "{", "length 2 is past the file's end: 1 bytes follow it");
  expect_refused(length_field(~std::uint64_t{0}) + "{}",
                 "length 18,446,744,073,709,551,615 is past the limit of 100,000,000 bytes");
  const std::string good = file_of(kGood, 4);
  expect_refused(length_field(good.size() - 7) + good.substr(8), "past the file's end");
  expect_refused(length_field(100'000'001) + "{}", "past the limit");
  expect_refused(length_field(100'000'000) + "{}", "past the file's end");
}

TEST(HeaderTest, StartsWithItsBrace) {
  expect_refused(file_of("\xEF\xBB\xBF{}", 0), "starts with a byte order mark");
  expect_refused(file_of(" {}", 0), "starts with 0x20, not with \"{\" (compat");
  expect_refused(file_of("[]", 0), "starts with 0x5B, not with \"{\"");
  expect_refused(file_of(std::string("\0{}", 3), 0), "starts with 0x00");
  expect_refused(file_of("     ", 0), "starts with 0x20");
  expect_accepted(file_of(" \n\t\r{}", 0), {.compat = true});
  expect_refused(file_of("\xEF\xBB\xBF{}", 0), "byte order mark", {.compat = true});
  expect_refused(file_of("  ", 0), "not valid JSON", {.compat = true});
}

TEST(HeaderTest, EndsWithItsBraceAndSpaces) {
  expect_accepted(file_of("{}", 0));
  expect_accepted(file_of("{}      ", 0));
  expect_refused(file_of("{}\n", 0), "byte 2 of the header, after the object, is 0x0A");
  expect_refused(file_of("{} \t ", 0), "after the object, is 0x09");
  expect_refused(file_of(std::string("{}\0", 3), 0), "after the object, is 0x00");
  expect_refused(file_of("{}x", 0), "not valid JSON");
  expect_accepted(file_of("{} \r\n\t", 0), {.compat = true});
  expect_refused(file_of(std::string("{}\0", 3), 0), "is 0x00", {.compat = true});
}

TEST(HeaderTest, RefusesWhatIsNotUtf8) {
  for (const char* bad : {"\x80", "\xC0\xAF", "\xE0\x80\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80",
                          "\xF5\x80\x80\x80", "\xC3", "\xFF"}) {
    expect_refused(file_of("{" + member("a" + std::string(bad), kFields) + "}", 4),
                   "the header is not UTF-8 at byte 3");
  }
  expect_accepted(file_of("{" + member("\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80", kFields) + "}", 4));
}

TEST(HeaderTest, RefusesWhatIsNotJson) {
  const std::string entry = member("a", kFields);
  const std::vector<std::string> texts = {
      "{" + entry + "}{}",
      "{" + entry + "} {}",
      "{" + entry + ",}",
      "{," + entry + "}",
      "{" + entry,
      "{" + entry + "]",
      entry + "}",
      "{" + entry + "}}",
      "{a:{}}",
      "{'a':{}}",
      "{\"a\"{}}",
      "{\"a\":}",
      "{\"a\"}",
      "{\"a",
      "{\"a\":{\"dtype\":\"U8",
      "{]",
      "{}]",
      "{\"a\":{" + kFields + ",}}",
      "{\"a\":{" + kFields + "} \"b\":{}}",
      "{/* c */" + entry + "}",
      "{" + entry + "}// c",
      "{\"__metadata__\":{\"a\":\"\\x\"}}",
      std::string("{\"__metadata__\":{\"a\":\"\\ud800\"}}"),
      std::string("{\"__metadata__\":{\"a\":\"\\udc00\"}}"),
      std::string("{\"__metadata__\":{\"a\":\"\\ud800\\u0041\"}}"),
      std::string("{\"__metadata__\":{\"\\ud800\":\"a\"}}"),
      std::string("{\"__metadata__\":{\"a\":\"\\u12g4\"}}"),
      std::string("{\"__metadata__\":{\"a\":\"\n\"}}"),
      std::string("{\"__metadata__\":{\"a\":\"b\"\"c\":\"d\"}}"),
      std::string("{\"__metadata__\":{\"a\" \"b\"}}"),
      std::string("{\"__metadata__\":{\"a\":\"b\",,\"c\":\"d\"}}"),
      R"({"a":{"dtype":"U8","shape":[4,],"data_offsets":[0,4]}})",
      R"({"a":{"dtype":"U8","shape":[4 4],"data_offsets":[0,4]}})",
      R"({"a":{"dtype":"U8","shape":[4}],"data_offsets":[0,4]}})",
      R"({"a":{"dtype":"U8","shape":[4,"data_offsets":[0,4]}})",
      R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]]})",
  };
  for (const std::string& bad : texts) {
    const std::string file = length_field(bad.size()) + bad + "data";
    const auto header = parse_header(file);
    ASSERT_FALSE(header) << bad;
    EXPECT_EQ(header.error().code, Code::corrupt) << bad;
  }
  expect_refused(file_of("{" + entry + "} {}", 4), "not valid JSON at byte 54: something follows");
  expect_refused(file_of("{\"__metadata__\":{\"a\":\"\n\"}}", 0),
                 "not valid JSON at byte 22: a control");
}

TEST(HeaderTest, RefusesDeepNestingWithoutFollowingIt) {
  const std::string deep(100'000, '[');
  expect_refused(file_of("{\"a\":" + deep + std::string(100'000, ']') + "}", 0),
                 "nested deeper than 3 levels at byte 7");
  std::string objects = "{";
  for (int at = 0; at < 100'000; ++at) objects += "\"a\":{";
  expect_refused(file_of(objects + std::string(100'001, '}'), 0), "nested deeper than 3 levels");
  expect_refused(file_of("{" + member("a", kFields + ",\"x\":{\"y\":[]}") + "}", 4),
                 "nested deeper than 3 levels", {.compat = true});
  expect_accepted(file_of("{" + member("a", kFields + ",\"x\":{\"y\":\"[[[[{{\"}") + "}", 4),
                  {.compat = true});
}

TEST(HeaderTest, NoNameStandsTwice) {
  expect_refused(file_of("{" + u8("a", 0, 4) + "," + u8("a", 4, 8) + "}", 8),
                 "tensor \"a\": the name stands twice");
  expect_refused(file_of("{" + u8("a", 0, 4) + "," + u8("\\u0061", 4, 8) + "}", 8),
                 "tensor \"a\": the name stands twice");
  expect_refused(file_of(R"({"__metadata__":{},"__metadata__":{}})", 0),
                 "the name \"__metadata__\" stands twice");
  expect_refused(file_of(R"({"__metadata__":{"k":"1","j":"","\u006b":"1"}})", 0),
                 "\"__metadata__\": the name \"k\" stands twice");
  expect_refused(file_of("{" + member("a", kFields + ",\"dtype\":\"U8\"") + "}", 4),
                 "tensor \"a\": the field \"dtype\" stands twice");
  expect_refused(file_of("{" + member("a", kFields + ",\"x\":1,\"x\":2") + "}", 4),
                 "tensor \"a\": the field \"x\" stands twice", {.compat = true});
  expect_refused(file_of("{" + member("a", kFields + ",\"x\":{\"y\":1,\"\\u0079\":2}") + "}", 4),
                 "tensor \"a\": the name \"y\" stands twice in one object", {.compat = true});
}

TEST(HeaderTest, MetadataIsTextToText) {
  expect_accepted(file_of(R"({"__metadata__":{"":"","a":"\ud83d\ude00\u0000"}})", 0));
  expect_refused(file_of(R"({"__metadata__":null})", 0),
                 "\"__metadata__\" is null, not an object of text to text");
  expect_refused(file_of(R"({"__metadata__":7})", 0), "is a number, not an object");
  expect_refused(file_of(R"({"__metadata__":["a"]})", 0), "is an array, not an object");
  expect_refused(file_of(R"({"__metadata__":{"a":1}})", 0),
                 "\"__metadata__\": the value of \"a\" is a number, not text");
  expect_refused(file_of(R"({"__metadata__":{"a":{"b":"c"}}})", 0), "is an object, not text");
  expect_refused(file_of(R"({"__metadata__":{"a":null}})", 0), "is null, not text");
  expect_refused(file_of(R"({"__met\u0061data__":{"a":true}})", 0), "is a boolean, not text");
}

TEST(HeaderTest, TensorHasItsThreeFieldsAndNoOther) {
  expect_refused(file_of(R"({"a":4})", 0), "tensor \"a\": it is a number, not an object");
  expect_refused(file_of(R"({"a":["U8",[4],[0,4]]})", 4), "it is an array, not an object");
  expect_refused(file_of(R"({"a":null})", 0), "it is null, not an object");
  expect_refused(file_of(R"({"a":{}})", 0), "tensor \"a\": the field \"dtype\" is missing");
  expect_refused(file_of(R"({"a":{"dtype":"U8","data_offsets":[0,4]}})", 4),
                 "the field \"shape\" is missing");
  expect_refused(file_of(R"({"a":{"dtype":"U8","shape":[4]}})", 4),
                 "the field \"data_offsets\" is missing");
  expect_refused(file_of(R"({"a":{"shape":[4],"data_offsets":[0,4]}})", 4),
                 "the field \"dtype\" is missing");
  const std::string further = kFields + R"(,"strides":[1,{}])";
  expect_refused(file_of("{" + member("a", kFields + ",\"strides\":[1]") + "}", 4),
                 "tensor \"a\": it has a further field \"strides\" beside");
  for (const char* value : {"1", "-1.5e+7", "true", "false", "null", "\"\\n\"", "[]", "{}",
                            "[1,\"a\",null]", "{\"b\":1}", "1e-300", "1e308", "0"}) {
    expect_accepted(file_of("{" + member("a", kFields + ",\"x\":" + value) + "}", 4),
                    {.compat = true});
  }
  for (const char* value : {"01",       "1.",    ".5",     "+1",    "NaN",     "tru",  "nulll",
                            "-",        "1e",    "'a'",    "",      "\"\\q\"", "[1,]", "{\"b\":}",
                            "Infinity", "1e309", "1e-999", "1e999", "0x1",     "-01"}) {
    expect_refused(file_of("{" + member("a", kFields + ",\"x\":" + value) + "}", 4),
                   "not valid JSON", {.compat = true});
  }
}

TEST(HeaderTest, TensorsNamesAreBoundedAndPlain) {
  const auto named = [](std::string_view name) {
    return file_of("{" + member(name, kFields) + "}", 4);
  };
  expect_refused(named(""), "a tensor's name is empty");
  expect_accepted(named(std::string(1024, 'n')));
  expect_refused(named(std::string(1025, 'n')), "its name is 1,025 bytes long (1,024 at most)");
  expect_refused(named("a\\u0000b"),
                 "tensor \"a\\x00b\": its name has a control character at byte 1");
  expect_refused(named("layer.0.weight\\n"), "control character at byte 14");
  expect_refused(named("a\x7F"), "control character at byte 1");
  expect_refused(named("abcdefghij\xC2\x85"), "control character at byte 10");
  expect_accepted(named("\xC2\xA0 \\\"/\\\\"));
}

TEST(HeaderTest, AMillionTensorsAndNotOneMore) {
  std::string header = "{";
  for (int at = 0; at < 1'000'000; ++at) {
    if (at > 0) header += ',';
    header += format(R"("{}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})", at);
  }
  ASSERT_LE(header.size(), 100'000'000U);
  const auto table = parse_header(file_of(header + "}", 0));
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->tensors.size(), 1'000'000U);
  expect_refused(file_of(header + "," + u8("x", 0, 0) + "}", 0), "more than 1,000,000 tensors");
}

TEST(HeaderTest, AHundredMegabytesOfSpaces) {
  expect_accepted(file_of("{}" + std::string(99'999'998, ' '), 0));
  expect_accepted(file_of("{" + std::string(99'999'998, ' ') + "}", 0));
  expect_refused(file_of(std::string(100'000'000, ' '), 0), "starts with 0x20");
  expect_refused(file_of("{}" + std::string(99'999'999, ' '), 0), "past the limit");
}

TEST(HeaderTest, NothingIsLegalWhereThereIsNoData) {
  expect_accepted(file_of("{}", 0));
  expect_accepted(file_of(R"({"__metadata__":{}})", 0));
  expect_refused(file_of("{}", 1), "1 bytes of data without any tensor");
}

}  // namespace
}  // namespace wc::checkpoint
