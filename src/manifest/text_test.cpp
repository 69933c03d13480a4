#include "manifest/text.hpp"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "manifest/order.hpp"

namespace wc::manifest {
namespace {

// By the table of RFC 3629, section 4, as ranges of bytes.
bool reference_utf8(std::string_view text) {
  const auto in = [&](std::size_t at, unsigned low, unsigned high) {
    const auto byte = at < text.size() ? static_cast<unsigned char>(text[at]) : 0x100U;
    return byte >= low && byte <= high;
  };
  const auto tail = [&](std::size_t at) { return in(at, 0x80, 0xbf); };
  for (std::size_t at = 0; at < text.size();) {
    if (in(at, 0x00, 0x7f)) {
      at += 1;
    } else if (in(at, 0xc2, 0xdf) && tail(at + 1)) {
      at += 2;
    } else if ((in(at, 0xe0, 0xe0) && in(at + 1, 0xa0, 0xbf) && tail(at + 2)) ||
               (in(at, 0xe1, 0xec) && tail(at + 1) && tail(at + 2)) ||
               (in(at, 0xed, 0xed) && in(at + 1, 0x80, 0x9f) && tail(at + 2)) ||
               (in(at, 0xee, 0xef) && tail(at + 1) && tail(at + 2))) {
      at += 3;
    } else if ((in(at, 0xf0, 0xf0) && in(at + 1, 0x90, 0xbf) && tail(at + 2) && tail(at + 3)) ||
               (in(at, 0xf1, 0xf3) && tail(at + 1) && tail(at + 2) && tail(at + 3)) ||
               (in(at, 0xf4, 0xf4) && in(at + 1, 0x80, 0x8f) && tail(at + 2) && tail(at + 3))) {
      at += 4;
    } else {
      return false;
    }
  }
  return true;
}

TEST(TextTest, KnowsEverySequenceOfThreeBytes) {
  for (unsigned word = 0; word < (1U << 24); ++word) {
    const char bytes[] = {static_cast<char>(word), static_cast<char>(word >> 8),
                          static_cast<char>(word >> 16)};
    const std::string_view text(bytes, 3);
    if (is_utf8(text) != reference_utf8(text)) {
      FAIL() << std::hex << word;
    }
  }
}

TEST(TextTest, KnowsTheBordersOfFourBytes) {
  EXPECT_TRUE(is_utf8("\xf0\x90\x80\x80"));
  EXPECT_FALSE(is_utf8("\xf0\x8f\xbf\xbf"));
  EXPECT_TRUE(is_utf8("\xf4\x8f\xbf\xbf"));
  EXPECT_FALSE(is_utf8("\xf4\x90\x80\x80"));
  EXPECT_FALSE(is_utf8("\xf0\x90\x80"));
  EXPECT_FALSE(is_utf8("\xf5\x80\x80\x80"));
}

// A byte anywhere in a long text is seen, whatever the words that the text is read in.
TEST(TextTest, SeesAByteAtEveryPlace) {
  for (unsigned value = 0; value < 256; ++value) {
    for (std::size_t at = 0; at < 20; ++at) {
      std::string text = "model.layers.10.mlp~";
      text[at] = static_cast<char>(value);
      const bool control = value < 0x20 || value == 0x7f;
      ASSERT_EQ(is_utf8(text), value < 0x80) << value << " at " << at;
      ASSERT_EQ(is_plain(text), value < 0x80 && !control) << value << " at " << at;
    }
  }
}

TEST(TextTest, PrintableLeavesOutFurtherControls) {
  EXPECT_TRUE(is_printable("modèle 模型 🦙"));
  EXPECT_TRUE(is_plain("a\xc2\x85z"));
  EXPECT_FALSE(is_printable("a\xc2\x85z"));
  EXPECT_FALSE(is_printable("a\xe2\x80\xa8z"));
  EXPECT_FALSE(is_printable("a\tz"));
}

TEST(TextTest, ReplacesWhatIsNoUtf8AndCutsBetweenCodePoints) {
  EXPECT_EQ(to_utf8("a\xff\xfez", 100), "a\xef\xbf\xbd\xef\xbf\xbdz");
  EXPECT_EQ(to_utf8("ab\xc3\xa9", 3), "ab");
  EXPECT_EQ(to_utf8("ab\xc3\xa9", 4), "ab\xc3\xa9");
  EXPECT_TRUE(is_utf8(to_utf8(std::string(100, '\xe2'), 50)));
}

TEST(TextTest, MessagesShowNothingThatATerminalWouldObey) {
  EXPECT_EQ(shown("a\x1b[31m\n"), "a?[31m?");
  EXPECT_EQ(shown(std::string(300, 'x')).size(), 203U);
}

TEST(TextTest, DigestsHaveATagAndDigits) {
  EXPECT_TRUE(is_digest("xxh3t-4m:00112233445566778899aabbccddeeff"));
  EXPECT_TRUE(is_digest("sha256:" + std::string(64, 'a')));
  for (const std::string& text : std::vector<std::string>{
           std::string(), std::string("00112233445566778899aabbccddeeff"),
           ":" + std::string(32, '0'), "xxh3t-4m:" + std::string(15, '0'),
           "xxh3t-4m:" + std::string(129, '0'), "xxh3t-4m:" + std::string(32, 'A'),
           "XXH3:" + std::string(32, '0'), std::string(33, 't') + ":" + std::string(32, '0')}) {
    EXPECT_FALSE(is_digest(text)) << text;
  }
}

TEST(OrderTest, SortsAsTextsAreCompared) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> names(random() % 200);
    for (std::string& name : names) {
      name.assign(random() % 3 * 8, 'm');
      for (auto more = random() % 12; more > 0; --more)
        name += static_cast<char>(random() % 2 == 0 ? 'a' + random() % 2 : 1 + random() % 255);
    }
    const std::vector<std::string_view> views(names.begin(), names.end());
    std::vector<std::uint32_t> expected(names.size());
    for (std::uint32_t at = 0; at < expected.size(); ++at) expected[at] = at;
    std::sort(expected.begin(), expected.end(), [&](auto left, auto right) {
      return names[left] != names[right] ? names[left] < names[right] : left < right;
    });
    ASSERT_EQ(sorted_by_name(views), expected) << "round " << round;
  }
}

}  // namespace
}  // namespace wc::manifest
