#include "api/structs.hpp"

#include <array>

#include <gtest/gtest.h>

namespace wc::api {
namespace {

// The same struct, as an older header and a newer one know it.
struct Old {
  std::size_t struct_size;
  std::int32_t first;
};
struct Now {
  std::size_t struct_size;
  std::int32_t first;
  std::int32_t second;
  const char* third;
};
struct New {
  Now now;
  std::uint64_t fourth;
};

template <typename T>
const Now* as_now(const T& given) {
  return reinterpret_cast<const Now*>(&given);
}

TEST(StructsTest, WhatAnOlderCallerLacksIsADefault) {
  const Old old{sizeof(Old), 7};
  // `Old` has padding where `second` is: as long as the size says that it is a member, it counts.
  const auto taken = take_struct(as_now(old), "x");
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->first, 7);
  EXPECT_EQ(taken->third, nullptr);
  EXPECT_EQ(taken->struct_size, sizeof(Now));
}

TEST(StructsTest, ANewerCallersUnsetMembersAreAccepted) {
  const New newer{{sizeof(New), 1, 2, "3"}, 0};
  const auto taken = take_struct(as_now(newer), "x");
  ASSERT_TRUE(taken);
  EXPECT_STREQ(taken->third, "3");
}

TEST(StructsTest, ANewerCallersSetMembersAreRefused) {
  const New newer{{sizeof(New), 1, 2, "3"}, 4};
  const auto taken = take_struct(as_now(newer), "wc_x");
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, Code::unsupported);
  EXPECT_NE(taken.error().message.find("wc_x"), std::string::npos);
}

TEST(StructsTest, SizesThatNoStructHasAreRefused) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{7}, kMaxStructBytes + 1, SIZE_MAX}) {
    Now given{size, 1, 2, nullptr};
    const auto taken = take_struct(&given, "x");
    ASSERT_FALSE(taken) << size;
    EXPECT_EQ(taken.error().code, Code::invalid_argument);
    EXPECT_FALSE(give_struct(&given, Now{}, "x")) << size;
  }
}

TEST(StructsTest, NullIsADefaultOnlyWhereItMayBe) {
  EXPECT_FALSE(take_struct<Now>(nullptr, "x"));
  EXPECT_FALSE(give_struct<Now>(nullptr, Now{}, "x"));
  const auto taken = take_struct_or_default<Now>(nullptr, "x");
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->first, 0);
}

TEST(StructsTest, NothingIsWrittenPastAnOlderCallersEnd) {
  struct {
    Old old;
    std::uint64_t behind;
  } caller{{sizeof(Old), 0}, 0xeeee};
  const Now filled{sizeof(Now), 5, 6, "7"};
  ASSERT_TRUE(give_struct(reinterpret_cast<Now*>(&caller.old), filled, "x"));
  EXPECT_EQ(caller.old.first, 5);
  EXPECT_EQ(caller.old.struct_size, sizeof(Old));
  EXPECT_EQ(caller.behind, 0xeeeeU);
}

TEST(StructsTest, ANewerCallersFurtherMembersAreZeroed) {
  New caller{{sizeof(New), 0, 0, nullptr}, 99};
  const Now filled{sizeof(Now), 5, 6, "7"};
  ASSERT_TRUE(give_struct(&caller.now, filled, "x"));
  EXPECT_EQ(caller.now.second, 6);
  EXPECT_EQ(caller.now.struct_size, sizeof(New));
  EXPECT_EQ(caller.fourth, 0U);
}

}  // namespace
}  // namespace wc::api
