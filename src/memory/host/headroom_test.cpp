#include "memory/host/headroom.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/units.hpp"
#include "memory/host/control_groups.hpp"
#include "tests/support/temp_folder.hpp"

namespace wc::memory {
namespace {

using testing::HasSubstr;

// A system made of text files.
class HeadroomTest : public testing::Test {
 protected:
  HeadroomTest() {
    folder_.write("proc/meminfo",
                  "MemTotal:       4194304 kB\nMemFree:   1 kB\n"
                  "MemAvailable:    2097152 kB\nHugePages_Total:   0\n");
  }

  void version2(std::string_view group, std::string_view mounted_root = "/") {
    folder_.write("proc/self/mountinfo",
                  format("22 1 0:20 / /proc rw - proc proc rw\n"
                         "30 22 0:26 {} /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n",
                         mounted_root));
    folder_.write("proc/self/cgroup", format("0::{}\n", group));
  }

  void limit2(const std::string& group, std::string_view max, std::uint64_t current,
              std::string_view stat = "") {
    folder_.write("sys/fs/cgroup" + group + "/memory.max", format("{}\n", max));
    folder_.write("sys/fs/cgroup" + group + "/memory.current", format("{}\n", current));
    folder_.write("sys/fs/cgroup" + group + "/memory.stat", stat);
  }

  [[nodiscard]] SystemFacts facts() const { return {.root = folder_.path().string()}; }
  [[nodiscard]] Headroom headroom() const {
    auto room = memory_headroom(facts());
    EXPECT_TRUE(room) << room.error().message;
    return room ? *room : Headroom();
  }

  support::TempFolder folder_;
};

TEST_F(HeadroomTest, WithoutGroupsItIsWhatTheMachineHas) {
  EXPECT_EQ(headroom().bytes, 2048 * kMiB);
  EXPECT_EQ(headroom().limit, "MemAvailable");
  EXPECT_EQ(*total_memory(facts()), 4096 * kMiB);
}

TEST_F(HeadroomTest, MissingFactsAreErrors) {
  folder_.write("proc/meminfo", "MemFree: 1 kB\n");
  EXPECT_EQ(memory_headroom(facts()).error().code, Code::io);
  EXPECT_EQ(total_memory(facts()).error().code, Code::io);
}

TEST_F(HeadroomTest, TightestAncestorDecides) {
  version2("/a/b/c");
  limit2("/a/b/c", "max", 10 * kMiB);
  limit2("/a/b", "536870912", 100 * kMiB);
  limit2("/a", "1073741824", 1000 * kMiB);
  EXPECT_EQ(headroom().bytes, 24 * kMiB);
  EXPECT_EQ(headroom().limit, "memory.max of control group \"/a\"");
}

TEST_F(HeadroomTest, HighCountsLikeMax) {
  version2("/a");
  limit2("/a", "max", 100 * kMiB);
  folder_.write("sys/fs/cgroup/a/memory.high", "209715200\n");
  EXPECT_EQ(headroom().bytes, 100 * kMiB);
  EXPECT_THAT(headroom().limit, HasSubstr("memory.high"));
}

TEST_F(HeadroomTest, PageCacheOfTheGroupIsNotLost) {
  version2("/a");
  limit2("/a", format("{}", 512 * kMiB), 512 * kMiB,
         format("anon 1\ninactive_file_not 7\ninactive_file {}\nactive_file {}\n", 300 * kMiB,
                100 * kMiB));
  EXPECT_EQ(headroom().bytes, 350 * kMiB);
}

TEST_F(HeadroomTest, UseAboveTheLimitLeavesNothing) {
  version2("/a");
  limit2("/a", format("{}", 100 * kMiB), 200 * kMiB);
  EXPECT_EQ(headroom().bytes, 0U);
}

TEST_F(HeadroomTest, GroupInsideAContainersMountIsFoundBelowIt) {
  version2("/docker/x/inner", "/docker/x");
  limit2("/inner", format("{}", 64 * kMiB), 0);
  limit2("", format("{}", 32 * kMiB), 0);
  EXPECT_EQ(headroom().bytes, 32 * kMiB);
  EXPECT_THAT(headroom().limit, HasSubstr("control group \"/\""));
}

TEST_F(HeadroomTest, GroupOutsideTheMountFallsBackToWhatIsMounted) {
  version2("/../../other");
  limit2("", format("{}", 48 * kMiB), 16 * kMiB);
  EXPECT_EQ(headroom().bytes, 32 * kMiB);
}

TEST_F(HeadroomTest, Version1IsReadToo) {
  folder_.write("proc/self/mountinfo",
                "30 22 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
                "31 22 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                "32 22 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  folder_.write("proc/self/cgroup", "4:memory:/a/b\n1:cpu:/elsewhere\n0::/\n");
  const std::string top = "sys/fs/cgroup/memory";
  folder_.write(top + "/a/b/memory.limit_in_bytes", "9223372036854771712\n");
  folder_.write(top + "/a/b/memory.usage_in_bytes", "4096\n");
  folder_.write(top + "/a/memory.limit_in_bytes", format("{}\n", 128 * kMiB));
  folder_.write(top + "/a/memory.usage_in_bytes", format("{}\n", 100 * kMiB));
  folder_.write(top + "/a/memory.stat",
                format("inactive_file 999999999\ntotal_inactive_file {}\n", 50 * kMiB));
  const auto limits = memory_limits(facts().root);
  ASSERT_TRUE(limits);
  EXPECT_EQ(limits->size(), 1U) << "the group without a limit does not count";
  EXPECT_EQ(headroom().bytes, 78 * kMiB);
  EXPECT_EQ(headroom().limit, "memory.limit_in_bytes of control group \"/a\"");
}

TEST_F(HeadroomTest, UnreadableLimitIsAnError) {
  version2("/a");
  limit2("/a", "a lot", 0);
  const auto room = memory_headroom(facts());
  ASSERT_FALSE(room);
  EXPECT_EQ(room.error().code, Code::io);
  EXPECT_THAT(room.error().message, HasSubstr("a lot"));
}

TEST_F(HeadroomTest, MalformedTablesAreIgnored) {
  folder_.write("proc/self/mountinfo", "\n - \n1 2 3 - cgroup2\n- cgroup2 a b\n30 22 0:26 /");
  folder_.write("proc/self/cgroup", "\nnonsense\n0:\n0::\n::::\n");
  EXPECT_EQ(headroom().limit, "MemAvailable");
}

TEST_F(HeadroomTest, FilesLargerThanTheLimitAreRefusedBefore) {
  SystemFacts limited = facts();
  limited.file_limit_bytes = kMiB;
  EXPECT_TRUE(check_file_limit(kMiB, limited));
  const auto refused = check_file_limit(kMiB + 1, limited);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::exhausted);
  EXPECT_THAT(refused.error().message, HasSubstr("RLIMIT_FSIZE"));
}

TEST(HeadroomOfThisMachineTest, IsBetweenNothingAndEverything) {
  const auto room = memory_headroom();
  const auto total = total_memory();
  ASSERT_TRUE(room) << room.error().message;
  ASSERT_TRUE(total);
  EXPECT_GT(room->bytes, 0U);
  EXPECT_LE(room->bytes, *total);
}

}  // namespace
}  // namespace wc::memory
