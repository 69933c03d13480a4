#include "cli/call.hpp"

#include <gtest/gtest.h>

#include "cli/options.hpp"

namespace wc::cli {
namespace {

TEST(ExitStatusTest, ScriptsCanTellTheFailuresThatTheyHandle) {
  EXPECT_EQ(exit_status(Code::ok), 0);
  EXPECT_EQ(exit_status(Code::invalid_argument), 2);
  EXPECT_EQ(exit_status(Code::not_found), 3);
  EXPECT_EQ(exit_status(Code::disconnected), 4);
  EXPECT_EQ(exit_status(Code::timed_out), 5);
  EXPECT_EQ(exit_status(Code::exhausted), 6);
  for (const Code code :
       {Code::already_exists, Code::mismatch, Code::corrupt, Code::unsupported, Code::busy,
        Code::cancelled, Code::denied, Code::version, Code::io, Code::device, Code::internal}) {
    EXPECT_EQ(exit_status(code), 1) << name_of(code);
  }
}

TEST(JsonTest, EveryDocumentIsUtf8) {
  EXPECT_EQ(dumped({{"name",
                     "a\xff"
                     "b"}}),
            "{\"name\":\"a\xef\xbf\xbd"
            "b\"}");
  EXPECT_EQ(dumped({{"error", error_json({Code::busy, "still \"loading\"", {}})}}),
            R"({"error":{"code":"busy","message":"still \"loading\""}})");
}

TEST(OptionsTest, ValuesAreCheckedWhereTheyAreTaken) {
  std::uint32_t number = 7;
  std::chrono::nanoseconds duration{0};
  std::string choice;
  Options options;
  const auto& counts = options.number("--n", number, "n");
  const auto& lasts = options.duration("--timeout", duration, "t");
  const auto& chooses = options.choice("--tier", {"hot", "cold"}, choice, "c");
  EXPECT_TRUE(counts.take("12"));
  EXPECT_EQ(number, 12U);
  for (const char* wrong : {"", "-1", "1x", "4294967296"})
    EXPECT_FALSE(counts.take(wrong)) << wrong;
  EXPECT_TRUE(lasts.take("1.5s"));
  EXPECT_EQ(duration, std::chrono::milliseconds(1500));
  EXPECT_FALSE(lasts.take("soon"));
  EXPECT_TRUE(chooses.take("hot"));
  const auto refused = chooses.take("warm");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "\"warm\" is none of hot|cold");
  EXPECT_EQ(choice, "hot");
}

}  // namespace
}  // namespace wc::cli
