#include "catalog/generations.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "catalog/limits.hpp"

namespace wc::catalog {
namespace {

TEST(GenerationsTest, CountsEachNameAndFormByItself) {
  Generations generations;
  generations.hold("m", "raw");
  generations.hold("m", "{}");
  EXPECT_EQ(generations.next("m", "raw"), 1U);
  EXPECT_EQ(generations.next("m", "raw"), 2U);
  EXPECT_EQ(generations.next("m", "{}"), 1U);
  EXPECT_TRUE(generations.passed("m", "raw", 2));
  EXPECT_FALSE(generations.passed("m", "{}", 2));
  EXPECT_FALSE(generations.passed("m", "", 2));  // it may still come in the other form
  EXPECT_TRUE(generations.passed("m", "", 1));
  EXPECT_FALSE(generations.passed("unknown", "", 1));
}

TEST(GenerationsTest, NameThatComesBackGoesOn) {
  Generations generations;
  generations.hold("m", "raw");
  EXPECT_EQ(generations.next("m", "raw"), 1U);
  generations.let_go("m", "raw");
  generations.hold("m", "raw");
  EXPECT_EQ(generations.next("m", "raw"), 2U);
}

TEST(GenerationsTest, ForgottenNamesNeverComeBackWithAnOldGeneration) {
  Generations generations;
  generations.hold("kept", "raw");
  EXPECT_EQ(generations.next("kept", "raw"), 1U);
  generations.hold("m", "raw");
  for (int n = 0; n < 7; ++n) (void)generations.next("m", "raw");
  generations.let_go("m", "raw");
  std::size_t largest = 0;
  for (std::size_t n = 0; n < 3 * kMaxForgotten; ++n) {
    const std::string name = format("n{}", n);
    generations.hold(name, "raw");
    (void)generations.next(name, "raw");
    generations.let_go(name, "raw");
    largest = std::max(largest, generations.size());
  }
  EXPECT_LE(largest, kMaxForgotten + 2);
  generations.hold("m", "raw");
  EXPECT_GT(generations.next("m", "raw"), 7U);
  EXPECT_EQ(generations.next("kept", "raw"), 2U);
}

TEST(GenerationsTest, LongFormsAreForgottenByTheirSize) {
  Generations generations;
  const std::string form(kMaxFormBytes, 'x');
  for (std::size_t n = 0; n < 3 * kMaxForgottenBytes / kMaxFormBytes; ++n) {
    const std::string name = format("n{}", n);
    generations.hold(name, form);
    (void)generations.next(name, form);
    generations.let_go(name, form);
  }
  EXPECT_LE(generations.size(), kMaxForgottenBytes / kMaxFormBytes + 1);
}

TEST(GenerationsTest, NamesThatPublishedNothingLeaveNothing) {
  Generations generations;
  generations.hold("m", "raw");
  generations.let_go("m", "raw");
  EXPECT_EQ(generations.size(), 0U);
}

}  // namespace
}  // namespace wc::catalog
