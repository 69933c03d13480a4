#include "base/kill_point.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

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

TEST(KillPointDeathTest, ANumberMeansThatTimeAloneInTheWholeFamily) {
  EXPECT_EXIT(
      {
        arm_kill_point("loader.filled:2");
        kill_point("loader.filled");
        if (::fork() == 0) kill_point("loader.filled");
        int status = 0;
        ::wait(&status);
        kill_point("loader.filled");
        ::_exit(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? 3 : 4);
      },
      ::testing::ExitedWithCode(3), "");
}

TEST(KillPointDeathTest, TheEnvironmentArmsIt) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";  // runs this program anew
  ::setenv("WEIGHTCACHE_KILL_AT", "helper.reserve", 1);
  EXPECT_EXIT(kill_point("helper.reserve"), ::testing::KilledBySignal(SIGKILL), "");
  ::unsetenv("WEIGHTCACHE_KILL_AT");
}

}  // namespace
}  // namespace wc
