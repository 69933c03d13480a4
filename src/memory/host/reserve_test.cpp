#include "memory/host/reserve.hpp"

#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/units.hpp"
#include "memory/host/seal.hpp"
#include "tests/support/temp_folder.hpp"

namespace wc::memory {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string meminfo(std::uint64_t available_bytes) {
  return format("MemTotal: 999999999 kB\nMemAvailable: {} kB\n", available_bytes / 1024);
}

TEST(ReserveTest, EveryPageIsThereWhateverTheSizeAndThePages) {
  for (const bool huge : {true, false}) {
    for (const std::uint64_t bytes :
         {std::uint64_t{1}, std::uint64_t{4096}, 2 * kMiB, 2 * kMiB + 1, 5 * kMiB + 12'288}) {
      const auto fd = reserve_host(bytes, {.huge_pages = huge, .step_bytes = 2 * kMiB});
      ASSERT_TRUE(fd) << fd.error().message;
      EXPECT_TRUE(check_writable(*fd, bytes)) << bytes << " huge " << huge;
    }
  }
}

TEST(ReserveTest, ReservedMemoryReadsAsZeros) {
  const auto fd = reserve_host(4 * kMiB);
  ASSERT_TRUE(fd) << fd.error().message;
  const auto mapping =
      Mapping::map(*fd, {.bytes = 4 * kMiB, .protection = PROT_READ, .flags = MAP_SHARED});
  ASSERT_TRUE(mapping);
  EXPECT_THAT(mapping->bytes(), testing::Each(std::byte{0}));
}

TEST(ReserveTest, ProgressFollowsTheSteps) {
  std::vector<std::uint64_t> seen;
  const auto fd = reserve_host(
      5 * kMiB, {.step_bytes = 2 * kMiB, .progress = [&](std::uint64_t n) { seen.push_back(n); }});
  ASSERT_TRUE(fd);
  EXPECT_THAT(seen, ElementsAre(2 * kMiB, 4 * kMiB, 5 * kMiB));
}

TEST(ReserveTest, NothingIsNotReserved) {
  const auto fd = reserve_host(0);
  ASSERT_FALSE(fd);
  EXPECT_EQ(fd.error().code, Code::invalid_argument);
}

TEST(ReserveTest, MoreThanThereIsIsRefusedWithBothNumbers) {
  const support::TempFolder folder;
  folder.write("proc/meminfo", meminfo(3 * kMiB));
  const auto fd = reserve_host(4 * kMiB, {.facts = {.root = folder.path().string()}});
  ASSERT_FALSE(fd);
  EXPECT_EQ(fd.error().code, Code::exhausted);
  EXPECT_THAT(fd.error().message, HasSubstr("4.0 MiB of host memory needed"));
  EXPECT_THAT(fd.error().message, HasSubstr("3.0 MiB free (MemAvailable)"));
}

TEST(ReserveTest, AbsurdSizesAreRefusedNotWrapped) {
  for (const std::uint64_t bytes : {~std::uint64_t{0}, std::uint64_t{1} << 63}) {
    const auto fd = reserve_host(bytes);
    ASSERT_FALSE(fd);
    EXPECT_EQ(fd.error().code, Code::exhausted);
  }
}

TEST(ReserveTest, MemoryThatOthersTakeMeanwhileIsNoticedBetweenSteps) {
  const support::TempFolder folder;
  folder.write("proc/meminfo", meminfo(100 * kMiB));
  std::uint64_t last = 0;
  ReserveOptions options = {.step_bytes = 2 * kMiB, .facts = {.root = folder.path().string()}};
  options.progress = [&](std::uint64_t done) {
    last = done;
    if (done == 4 * kMiB) folder.write("proc/meminfo", meminfo(5 * kMiB));
  };
  const auto fd = reserve_host(10 * kMiB, options);
  ASSERT_FALSE(fd);
  EXPECT_EQ(fd.error().code, Code::exhausted);
  EXPECT_THAT(fd.error().message, HasSubstr("6.0 MiB still to reserve"));
  EXPECT_EQ(last, 4 * kMiB);
}

TEST(ReserveTest, FileLimitIsAnErrorAndNotASignal) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const struct rlimit limit = {.rlim_cur = 1 << 20, .rlim_max = 1 << 20};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto fd = reserve_host(2 * kMiB);
    ::_exit(!fd && fd.error().code == Code::exhausted ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(ReserveTest, MemoryIsGivenBackAfterAFailure) {
  const support::TempFolder folder;
  folder.write("proc/meminfo", meminfo(100 * kMiB));
  ReserveOptions options = {
      .step_bytes = 2 * kMiB, .name = "wc-reserve-test", .facts = {.root = folder.path().string()}};
  options.progress = [&](std::uint64_t) { folder.write("proc/meminfo", meminfo(0)); };
  const int before = ::dup(0);
  ASSERT_FALSE(reserve_host(10 * kMiB, options));
  const int after = ::dup(0);
  EXPECT_EQ(after, before + 1) << "a descriptor is left";
  Fd(before).reset();
  Fd(after).reset();
}

}  // namespace
}  // namespace wc::memory
