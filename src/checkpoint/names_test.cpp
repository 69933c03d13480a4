#include "checkpoint/names.hpp"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace wc::checkpoint {
namespace {

std::vector<HashedName> hashed(const std::vector<std::string>& names) {
  std::vector<HashedName> all;
  for (const std::string& name : names) {
    all.emplace_back(name, static_cast<std::uint32_t>(all.size()));
  }
  return all;
}

std::vector<std::string> numbered(int count) {
  std::vector<std::string> names;
  for (int at = 0; at < count; ++at) names.push_back(format("layer.{}.weight", at));
  return names;
}

TEST(NamesTest, SortingIsCompleteForEveryCount) {
  for (int count = 0; count < 200; ++count) {
    const auto names = numbered(count);
    auto all = hashed(names);
    EXPECT_EQ(sort_and_find_twice(all), nullptr);
    EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
    EXPECT_EQ(all.size(), names.size());
  }
}

TEST(NamesTest, FindsWhatStandsTwice) {
  auto names = numbered(1000);
  names.insert(names.begin() + 3, "layer.997.weight");
  auto all = hashed(names);
  const HashedName* twice = sort_and_find_twice(all);
  ASSERT_NE(twice, nullptr);
  EXPECT_EQ(twice->name, "layer.997.weight");
}

TEST(NamesTest, EqualHashesOfDifferentNamesAreNoDuplicates) {
  const auto names = numbered(1000);
  auto all = hashed(names);
  for (HashedName& name : all) name.hash = 42;
  EXPECT_EQ(sort_and_find_twice(all), nullptr);
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
  all.push_back(all[500]);
  EXPECT_NE(sort_and_find_twice(all), nullptr);
}

TEST(NamesTest, MarksWhatIsWantedAndTellsWhatIsAbsent) {
  const auto names = numbered(100);
  auto all = hashed(names);
  (void)sort_and_find_twice(all);
  const std::vector<std::string> wanted_names = {"layer.7.weight", "layer.70.weight"};
  auto wanted = hashed(wanted_names);
  (void)sort_and_find_twice(wanted);
  std::vector<bool> found(100);
  EXPECT_EQ(mark_wanted(all, wanted, found), nullptr);
  EXPECT_EQ(std::count(found.begin(), found.end(), true), 2);
  EXPECT_TRUE(found[7] && found[70]);
  const std::vector<std::string> absent_names = {"layer.100.weight"};
  const auto absent = hashed(absent_names);
  const HashedName* missing = mark_wanted(all, absent, found);
  ASSERT_NE(missing, nullptr);
  EXPECT_EQ(missing->name, "layer.100.weight");
}

TEST(NamesTest, ListsAreShort) {
  EXPECT_EQ(listed(numbered(2)), "\"layer.0.weight\", \"layer.1.weight\"");
  EXPECT_TRUE(listed(numbered(1000)).ends_with("\"layer.7.weight\" and 992 more"));
}

}  // namespace
}  // namespace wc::checkpoint
