#include "manifest/selector.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace wc::manifest {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Kind = Selector::Kind;

void expect_no_selector(std::string_view text, const char* message) {
  const auto selector = parse_selector(text);
  ASSERT_FALSE(selector) << text;
  EXPECT_EQ(selector.error().code, Code::invalid_argument);
  EXPECT_THAT(selector.error().message, HasSubstr(message)) << text;
}

TEST(SelectorTest, SyntaxAloneDecides) {
  const std::vector<std::pair<std::string, Selector>> cases = {
      {"Llama-3-8B", {Kind::name, "Llama-3-8B", {}}},
      {"meta-llama/Llama-3-8B", {Kind::name, "meta-llama/Llama-3-8B", {}}},
      {".hidden", {Kind::name, ".hidden", {}}},
      {"模型 7B", {Kind::name, "模型 7B", {}}},
      {"a@1", {Kind::name, "a", 1}},
      {"org/a@18446744073709551615", {Kind::name, "org/a", 18446744073709551615U}},
      {"@0123", {Kind::fingerprint, "0123", {}}},
      {"@ABCDEF0123", {Kind::fingerprint, "abcdef0123", {}}},
      {"@" + std::string(32, 'f'), {Kind::fingerprint, std::string(32, 'f'), {}}},
      {"/models/a@b", {Kind::path, "/models/a@b", {}}},
      {"./a", {Kind::path, "./a", {}}},
      {"../a", {Kind::path, "../a", {}}},
      {"~/a", {Kind::path, "~/a", {}}},
      {".", {Kind::path, ".", {}}},
      {"..", {Kind::path, "..", {}}},
      {"/", {Kind::path, "/", {}}},
  };
  for (const auto& [text, expected] : cases) {
    const auto selector = parse_selector(text);
    ASSERT_TRUE(selector) << text << ": " << selector.error().message;
    EXPECT_EQ(*selector, expected) << text;
    EXPECT_EQ(parse_selector(to_string(*selector)), expected) << text;
  }
}

TEST(SelectorTest, RefusalsSayWhichRule) {
  expect_no_selector("", "1 to 256 bytes");
  expect_no_selector(std::string(257, 'a'), "1 to 256 bytes, this one 257");
  expect_no_selector("-a", "does not start with -");
  expect_no_selector("~user", "does not start with ~");
  expect_no_selector(" a", "no space at either end");
  expect_no_selector("a ", "no space at either end");
  expect_no_selector("a\nb", "without control characters");
  expect_no_selector("a\xc2\x9f", "without control characters");
  expect_no_selector("\xff", "UTF-8");
  expect_no_selector("a/b/c", "one / at most");
  expect_no_selector("a/", "neither part");
  expect_no_selector("a/..", "neither part");
  expect_no_selector(".../", "neither part");
  expect_no_selector("a@", "a generation, a number from 1 on");
  expect_no_selector("a@0", "a number from 1 on");
  expect_no_selector("a@01", "a number from 1 on");
  expect_no_selector("a@-1", "a number from 1 on");
  expect_no_selector("a@1x", "a number from 1 on");
  expect_no_selector("a@1@2", "a number from 1 on");
  expect_no_selector("a@18446744073709551616", "a number from 1 on");
  expect_no_selector("@", "4 to 32 hexadecimal digits");
  expect_no_selector("@abc", "4 to 32 hexadecimal digits");
  expect_no_selector("@" + std::string(33, 'a'), "4 to 32 hexadecimal digits");
  expect_no_selector("@abcg", "4 to 32 hexadecimal digits");
  expect_no_selector("/" + std::string(4096, 'a'), "at most 4,096");
  expect_no_selector(std::string_view("/a\0b", 4), "NUL");
}

TEST(SelectorTest, NamesAreNamesOnly) {
  EXPECT_TRUE(valid_name("a"));
  EXPECT_TRUE(valid_name("org/name"));
  EXPECT_TRUE(valid_name("a...b"));
  EXPECT_TRUE(valid_name(std::string(256, 'x')));
  for (const char* name : {"a@1", "@abcd", "/a", "./a", "..", ".", "a//b", "../a"}) {
    const auto valid = valid_name(name);
    ASSERT_FALSE(valid) << name;
    EXPECT_EQ(valid.error().code, Code::invalid_argument);
  }
}

TEST(SelectorTest, ProposesNearNames) {
  const std::vector<std::string> names = {"Llama-3-8B", "Llama-3-70B", "meta-llama/Llama-3-8B",
                                          "Qwen3-32B", "gpt-oss-120b"};
  EXPECT_THAT(nearest("llama-3-8b", names),
              ElementsAre("Llama-3-8B", "meta-llama/Llama-3-8B", "Llama-3-70B"));
  EXPECT_THAT(nearest("Qwne3-32B", names), ElementsAre("Qwen3-32B"));
  EXPECT_THAT(nearest("org/gpt-oss-120b", names), ElementsAre("gpt-oss-120b"));
  EXPECT_THAT(nearest("mistral", names), IsEmpty());
  EXPECT_THAT(nearest("x", names), IsEmpty());
  EXPECT_THAT(nearest("", names), IsEmpty());
}

TEST(SelectorTest, ProposesThreeAtMostNearestFirst) {
  const std::vector<std::string> names = {"model-xx", "model-1", "model-x", "model", "model"};
  EXPECT_THAT(nearest("model", names), ElementsAre("model", "model-1", "model-x"));
}

}  // namespace
}  // namespace wc::manifest
