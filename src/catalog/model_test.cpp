// Long random lives of a catalog against the reference model. A failure prints its seed and step.
#include <random>

#include <gtest/gtest.h>

#include "catalog/scenario.hpp"

namespace wc::catalog {
namespace {

class ModelTest : public ::testing::TestWithParam<unsigned> {};

TEST_P(ModelTest, RandomLivesGoAsTheModelSays) {
  constexpr int kSteps = 8'000;
  const unsigned seed = GetParam();
  std::minstd_rand random(seed);
  Scenario scenario([&](std::uint32_t n) { return static_cast<std::uint32_t>(random() >> 4) % n; });
  for (int step = 0; step < kSteps; ++step) {
    const std::string difference = scenario.step();
    ASSERT_EQ(difference, "") << "seed " << seed << ", step " << step;
  }
  ASSERT_EQ(scenario.finish(), "") << "seed " << seed;
}

INSTANTIATE_TEST_SUITE_P(Seeds, ModelTest, ::testing::Range(1U, 9U));

}  // namespace
}  // namespace wc::catalog
