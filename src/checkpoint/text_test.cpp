#include "checkpoint/text.hpp"

#include <string>

#include <gtest/gtest.h>

namespace wc::checkpoint {
namespace {

TEST(TextTest, QuotesAreOneReadableLine) {
  EXPECT_EQ(in_quotes("lm_head.weight"), "\"lm_head.weight\"");
  EXPECT_EQ(in_quotes("a\"b\\c"), "\"a\\\"b\\\\c\"");
  EXPECT_EQ(in_quotes(std::string("\0\n\x7F\xC2\x85", 5)), "\"\\x00\\x0A\\x7F\\xC2\\x85\"");
  EXPECT_EQ(in_quotes("\xFF\xC3\xA4\xED\xA0\x80"), "\"\\xFF\xC3\xA4\\xED\\xA0\\x80\"");
  const std::string cut = in_quotes(std::string(5000, 'x'));
  EXPECT_LT(cut.size(), 240U);
  EXPECT_TRUE(cut.ends_with("\"... (5,000 bytes)"));
}

TEST(TextTest, FindsTheFirstByteThatIsNotUtf8) {
  EXPECT_EQ(first_invalid_utf8("\xF0\x9F\x98\x80 \xE2\x82\xAC"), std::nullopt);
  EXPECT_EQ(first_invalid_utf8("ab\xE2\x82"), 2U);
  EXPECT_EQ(first_invalid_utf8("ab\xC1\x81"), 2U);
  EXPECT_EQ(first_invalid_utf8("\xF0\x8F\xBF\xBF"), 0U);
}

TEST(TextTest, FindsControlsWhereverTheyStand) {
  for (std::size_t at = 0; at < 20; ++at) {
    for (const char control : {'\0', '\x1F', '\x7F'}) {
      std::string text(20, 'a');
      text[at] = control;
      EXPECT_EQ(first_control(text), at);
    }
  }
  EXPECT_EQ(first_control("\x20~ a plain name of some length"), std::nullopt);
  EXPECT_EQ(first_control("0123456\xC2\x9F"), 7U);
  EXPECT_EQ(first_control("0123456\xC2\xA0"), std::nullopt);
}

TEST(TextTest, CountsBracketsOutsideOfTexts) {
  EXPECT_EQ(nested_past("{\"[[[[\":[1]}", 2), std::nullopt);
  EXPECT_EQ(nested_past("{\"\\\"\":[[1]]}", 2), 7U);
  EXPECT_EQ(nested_past("]]]{[", 1), 4U);
}

}  // namespace
}  // namespace wc::checkpoint
