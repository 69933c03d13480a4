#include "base/units.hpp"

#include <gtest/gtest.h>

namespace wc {
namespace {

using namespace std::chrono_literals;

TEST(UnitsTest, SizesAreBinaryWithOneDigit) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.0 KiB");
  EXPECT_EQ(format_bytes(2'147'483'648), "2.0 GiB");
  EXPECT_EQ(format_bytes(1'048'575), "1.0 MiB");
  EXPECT_EQ(format_bytes(~std::uint64_t{0}), "16.0 EiB");
}

TEST(UnitsTest, CountsAreGroupedByThousands) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(9'110'454'272), "9,110,454,272");
}

TEST(UnitsTest, DurationsChooseTheirUnit) {
  EXPECT_EQ(format_duration(830ns), "830 ns");
  EXPECT_EQ(format_duration(1500us), "1.5 ms");
  EXPECT_EQ(format_duration(245s), "4 min 05 s");
  EXPECT_EQ(format_duration(7380s), "2 h 03 min");
}

TEST(UnitsTest, RatesAreDecimal) {
  EXPECT_EQ(format_rate(2'500'000'000, 1s), "2.5 GB/s");
  EXPECT_EQ(format_rate(1, 0ns), "-");
}

TEST(UnitsTest, ParsesWhatPeopleType) {
  EXPECT_EQ(*parse_bytes("64GiB"), std::uint64_t{64} << 30);
  EXPECT_EQ(*parse_bytes("1.5G"), std::uint64_t{3} << 29);
  EXPECT_EQ(*parse_bytes("10 GB"), 10'000'000'000U);
  EXPECT_EQ(*parse_bytes("4096"), 4096U);
  EXPECT_EQ(*parse_duration("10"), 10s);
  EXPECT_EQ(*parse_duration("250ms"), 250ms);
  EXPECT_EQ(*parse_duration("2h"), 2h);
}

TEST(UnitsTest, RefusesWhatIsNoSizeOrDuration) {
  for (const char* text : {"", "GiB", "-1", "1 XiB", "nan", "inf", "1e400", "99999999999TiB"}) {
    auto parsed = parse_bytes(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, Code::invalid_argument);
  }
  EXPECT_FALSE(parse_duration("1 fortnight"));
}

}  // namespace
}  // namespace wc
