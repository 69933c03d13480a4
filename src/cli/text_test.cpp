#include "cli/text.hpp"

#include <clocale>

#include <gtest/gtest.h>

namespace wc::cli {
namespace {

class TextTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(std::setlocale(LC_CTYPE, "C.UTF-8"), nullptr); }
  void TearDown() override { std::setlocale(LC_CTYPE, "C"); }
};

TEST_F(TextTest, NothingThatSteersATerminalIsPrintable) {
  EXPECT_EQ(printable("llama-8b"), "llama-8b");
  EXPECT_EQ(printable("a\x1b[2Jb"), "a\\x1b[2Jb");
  EXPECT_EQ(printable("a\nb\x7f"), "a\\x0ab\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b");           // C1: CSI
  EXPECT_EQ(printable("\xe2\x80\xae"), "\\xe2\\x80\\xae");  // right-to-left override
}

TEST_F(TextTest, BytesThatAreNoUtf8AreShownAsBytes) {
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable("\xc0\x80"), "\\xc0\\x80");                    // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // surrogate
  EXPECT_EQ(printable("\xf5\x80\x80\x80"), "\\xf5\\x80\\x80\\x80");  // beyond U+10FFFF
  EXPECT_EQ(printable("\xe4\xbd"), "\\xe4\\xbd");                    // cut short
  EXPECT_EQ(printable("größe 模型"), "größe 模型");
}

TEST_F(TextTest, WideCharactersTakeTwoCells) {
  EXPECT_EQ(cells("größe"), 5U);
  EXPECT_EQ(cells("模型"), 4U);
  EXPECT_EQ(clipped("模型-8b", 5), "模型…");
  EXPECT_EQ(clipped("模型-8b", 4), "模…");
}

TEST_F(TextTest, ClippingKeepsWhatFits) {
  EXPECT_EQ(clipped("llama", 5), "llama");
  EXPECT_EQ(clipped("llama-8b", 5), "llam…");
  EXPECT_EQ(clipped("llama", 1), "…");
  EXPECT_EQ(clipped("llama", 0), "");
}

TEST_F(TextTest, LinesBreakAtSpacesAndKeepTheirIndent) {
  EXPECT_EQ(wrapped("one two three", 9, 2), "one two\n  three");
  EXPECT_EQ(wrapped("unbreakable", 4, 2), "unbreakable");
  EXPECT_EQ(wrapped("", 10, 0), "");
}

TEST_F(TextTest, CountsAgreeWithTheirNoun) {
  EXPECT_EQ(counted(0, "reader"), "0 readers");
  EXPECT_EQ(counted(1, "reader"), "1 reader");
  EXPECT_EQ(counted(1234, "tensor"), "1,234 tensors");
}

TEST_F(TextTest, AgesAreWholeSecondsAndNeverNegative) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  EXPECT_EQ(age(0, 5 * kSecond), "-");
  EXPECT_EQ(age(5 * kSecond, 2 * kSecond), "0 s");
  EXPECT_EQ(age(1, 1 + 59 * kSecond), "59 s");
  EXPECT_EQ(age(1, 1 + 90 * kSecond), "1 min 30 s");
  EXPECT_EQ(age(1, 1 + 72 * 3600 * kSecond), "3 days");
}

}  // namespace
}  // namespace wc::cli
