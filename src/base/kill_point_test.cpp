#include "base/kill_point.hpp"

#include <gtest/gtest.h>
#include <signal.h>

namespace wc {
namespace {

TEST(KillPointTest, AnUnarmedPointDoesNothing) {
  arm_kill_point("");
  kill_point("loader.filled");
  kill_point("");
}

TEST(KillPointTest, AnotherPointDoesNothing) {
  arm_kill_point("loader.filled");
  kill_point("loader.fill");
  arm_kill_point("");
}

TEST(KillPointDeathTest, TheArmedPointKillsTheProcess) {
  EXPECT_EXIT(
      {
        arm_kill_point("loader.filled");
        kill_point("loader.filled");
      },
      ::testing::KilledBySignal(SIGKILL), "");
}

TEST(KillPointDeathTest, TheEnvironmentArmsIt) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";  // runs this program anew
  ::setenv("WEIGHTCACHE_KILL_AT", "helper.reserve", 1);
  EXPECT_EXIT(kill_point("helper.reserve"), ::testing::KilledBySignal(SIGKILL), "");
  ::unsetenv("WEIGHTCACHE_KILL_AT");
}

}  // namespace
}  // namespace wc
