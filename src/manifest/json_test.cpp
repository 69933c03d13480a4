#include "manifest/json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "manifest/fingerprint.hpp"

namespace wc::manifest {
namespace {

using testing::HasSubstr;

void expect_refused(const std::string& text, const char* message) {
  const auto canonical = canonical_json(std::string_view(text));
  ASSERT_FALSE(canonical) << text.substr(0, 100);
  EXPECT_EQ(canonical.error().code, Code::invalid_argument);
  EXPECT_THAT(canonical.error().message, HasSubstr(message));
}

std::string canonical(std::string_view text) {
  const auto result = canonical_json(text);
  EXPECT_TRUE(result) << result.error().message;
  return result.value_or("");
}

// The example of RFC 8785, section 3.2.3: keys by their UTF-16 code units.
TEST(JsonTest, SortsKeysByUtf16CodeUnits) {
  EXPECT_EQ(canonical(R"({"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew",)"
                      R"("1":"One","\ud83d\ude00":"Emoji","\u0080":"Control",)"
                      R"("\u00f6":"Latin"})"),
            "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\xc2\x80\":\"Control\","
            "\"\xc3\xb6\":\"Latin\",\"\xe2\x82\xac\":\"Euro Sign\","
            "\"\xf0\x9f\x98\x80\":\"Emoji\",\"\xef\xac\xb3\":\"Hebrew\"}");
}

TEST(JsonTest, SortsAPrefixFirstAndNestedObjectsToo) {
  EXPECT_EQ(canonical(R"({"ab":{"b":1,"a":[{"d":1,"c":2}]},"a":2,"":3})"),
            R"({"":3,"a":2,"ab":{"a":[{"c":2,"d":1}],"b":1}})");
}

TEST(JsonTest, EscapesNoMoreThanItMust) {
  EXPECT_EQ(
      canonical(
          R"(["\u0000\u0008\u0009\u000a\u000b\u000c\u000d\u001f\u0022\u005c\/\u007f\u20ac"])"),
      "[\"\\u0000\\b\\t\\n\\u000b\\f\\r\\u001f\\\"\\\\/\x7f\xe2\x82\xac\"]");
}

TEST(JsonTest, WritesIntegersAndLiteralsOneWay) {
  EXPECT_EQ(canonical(" [ 0 , -0, 9007199254740991, -9007199254740991, true,false,null ] "),
            "[0,0,9007199254740991,-9007199254740991,true,false,null]");
}

TEST(JsonTest, RefusesNumbersThatADoubleMayNotHold) {
  expect_refused(R"({"a":{"b":[1,9007199254740992]}})", "field \"a.b[1]\": 9007199254740992");
  expect_refused("[-9007199254740992]", "past +-(2^53 - 1)");
  expect_refused("[123456789012345678901234567890]", "is no integer within");
  expect_refused("[1.0]", "field \"[0]\": 1.0 is no integer");
  expect_refused("[1e3]", "1e3 is no integer");
  expect_refused("[1e999]", "no valid JSON");
}

TEST(JsonTest, RefusesKeysTwiceAtEveryLevelAfterUnescaping) {
  expect_refused(R"({"a":1,"a":1})", "field \"a\": the key stands twice");
  expect_refused(R"({"x":[{"a":1,"\u0061":2}]})", "field \"x[0].a\": the key stands twice");
}

TEST(JsonTest, RefusesWhatIsNotJsonToTheLetter) {
  for (const char* text : {"",
                           " ",
                           "{",
                           "[1,]",
                           "{\"a\":1,}",
                           "[01]",
                           "[+1]",
                           "[NaN]",
                           "nul",
                           "1 2",
                           "{} {}",
                           "'a'",
                           "[\"\\ud800\"]",
                           "[\"\\udc00\\ud800\"]",
                           "[\"\xff\"]",
                           "[\"\xed\xa0\x80\"]",
                           "[\"\n\"]",
                           "/**/[]",
                           "\xef\xbb\xbf{}",
                           "[\"\\x\"]",
                           "{1:2}"}) {
    expect_refused(text, "no valid JSON");
  }
  expect_refused(std::string("{}\0{}", 5), "no valid JSON at byte 2");
}

TEST(JsonTest, IsBounded) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_EQ(canonical(nested(32)), nested(32));
  expect_refused(nested(33), "more than 32 levels");
  expect_refused(std::string(1000000, '['), "more than 32 levels");
  expect_refused(std::string((16 << 20) + 1, ' '), "at most 16.0 MiB");
  std::string many = "[0";
  for (int at = 0; at < (1 << 20); ++at) many += ",0";
  expect_refused(many + "]", "more than 1,048,576 values");
}

TEST(JsonTest, ReadsFloatsWhereAskedTo) {
  const auto value = parse_json(R"({"a":0.5,"b":18446744073709551615})", {.floats = true});
  ASSERT_TRUE(value);
  EXPECT_EQ((*value)["a"].get<double>(), 0.5);
}

}  // namespace
}  // namespace wc::manifest
