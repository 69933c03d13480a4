#include "daemon/helper_client.hpp"

#include <array>
#include <fstream>
#include <string>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/kill_point.hpp"
#include "base/mapping.hpp"
#include "base/units.hpp"
#include "daemon/log.hpp"
#include "tests/support/sample_manifest.hpp"

namespace wc::daemon {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using Done = HelperClient::Done;

class HelperClientTest : public ::testing::Test {
 protected:
  ~HelperClientTest() override { arm_kill_point(""); }

  // The point is the helper's and its children's: this process has none.
  void start(std::string_view kill_at = "") {
    start_log({FdView(2), Level::error, false});
    auto loop = EventLoop::create();
    ASSERT_TRUE(loop);
    loop_.emplace(std::move(*loop));
    arm_kill_point(kill_at);
    auto process = fork_helper();
    if (kill_at != "helper.job") arm_kill_point("");
    ASSERT_TRUE(process) << process.error().message;
    auto client = HelperClient::create(*loop_, std::move(*process));
    ASSERT_TRUE(client) << client.error().message;
    client_ = std::move(*client);
  }

  void run(std::chrono::milliseconds limit = 20s) {
    auto timer = loop_->at(Clock::now() + limit, [this] {
      ADD_FAILURE() << "no answer came";
      loop_->stop();
    });
    ASSERT_TRUE(loop_->run());
  }

  Result<Done> reserve(std::vector<std::uint64_t> sizes, std::uint64_t manifest_bytes = 0) {
    std::optional<Result<Done>> answer;
    client_->reserve(sizes, manifest_bytes, [&](Result<Done> done) {
      answer = std::move(done);
      loop_->stop();
    });
    EXPECT_FALSE(answer);  // never from inside the call
    run();
    return answer ? std::move(*answer) : Result<Done>(fail(Code::timed_out, "no answer"));
  }

  Result<Done> seal(const std::vector<std::uint64_t>& sizes, const std::vector<Fd>& writable,
                    const std::string& fingerprint) {
    const std::vector<FdView> views(writable.begin(), writable.end());
    std::optional<Result<Done>> answer;
    client_->seal({memory::Transport::host_fd, sizes, views, fingerprint}, [&](Result<Done> done) {
      answer = std::move(done);
      loop_->stop();
    });
    run();
    return answer ? std::move(*answer) : Result<Done>(fail(Code::timed_out, "no answer"));
  }

  std::optional<EventLoop> loop_;
  std::unique_ptr<HelperClient> client_;
};

std::uint64_t size_of(const Fd& file) {
  struct stat info{};
  return ::fstat(file.get(), &info) == 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
}

TEST_F(HelperClientTest, ReservedMemoryIsWritableAndOfItsSize) {
  start();
  auto done = reserve({kMiB, 3 * kMiB}, 8192);
  ASSERT_TRUE(done) << done.error().message;
  ASSERT_EQ(done->descriptors.size(), 3U);
  EXPECT_EQ(size_of(done->descriptors[0]), kMiB);
  EXPECT_EQ(size_of(done->descriptors[1]), 3 * kMiB);
  EXPECT_EQ(size_of(done->descriptors[2]), 8192U);
  for (const Fd& file : done->descriptors) EXPECT_EQ(::pwrite(file.get(), "x", 1, 0), 1);
  EXPECT_EQ(client_->jobs(), 0U);
}

TEST_F(HelperClientTest, MoreThanThereIsIsExhaustedAndNothingDies) {
  start();
  const pid_t helper = client_->pid();
  auto done = reserve({std::uint64_t{1} << 50});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::exhausted);
  EXPECT_EQ(client_->pid(), helper);
  EXPECT_TRUE(reserve({kMiB}));
}

TEST_F(HelperClientTest, AKilledReservationIsExhaustedAndTheHelperLives) {
  start("helper.reserve");
  const pid_t helper = client_->pid();
  for (int count = 0; count < 3; ++count) {
    auto done = reserve({kMiB});
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, Code::exhausted);
    EXPECT_THAT(done.error().message, HasSubstr("out-of-memory killer"));
    EXPECT_THAT(done.error().message, HasSubstr("1.0 MiB"));
  }
  EXPECT_EQ(client_->pid(), helper);
}

TEST_F(HelperClientTest, MemoryOfAReservationKilledAtItsEndIsGivenBack) {
  start("helper.reserved");
  auto done = reserve({kMiB});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::exhausted);
}

TEST_F(HelperClientTest, AHelperThatDiesFailsItsJobsAndIsReplaced) {
  start("helper.job");
  auto done = reserve({kMiB});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::busy);
  EXPECT_THAT(done.error().message, HasSubstr("signal 9"));
  arm_kill_point("");  // the next helper is forked from here
  auto again = reserve({kMiB});
  EXPECT_TRUE(again) << again.error().message;
}

TEST_F(HelperClientTest, ReleasedMemoryIsGoneWhenItIsCalledReleased) {
  start();
  auto done = reserve({kMiB});
  ASSERT_TRUE(done);
  // A reader's mapping would keep it; a pipe's end tells when the last copy of it has closed.
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
  const Fd read_end(ends[0]);
  std::vector<Fd> holders = std::move(done->descriptors);
  holders.emplace_back(ends[1]);
  bool released = false;
  client_->release(std::move(holders), [&] {
    released = true;
    char byte = 0;
    EXPECT_EQ(::read(read_end.get(), &byte, 1), 0) << "somebody still holds it";
    loop_->stop();
  });
  run();
  EXPECT_TRUE(released);
}

TEST_F(HelperClientTest, AReleaseIsDoneAlsoWhenItsProcessOrTheHelperDies) {
  for (const char* point : {"helper.drop", "helper.dropped", "helper.job"}) {
    start(point);
    std::vector<Fd> holders;
    holders.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    client_->release(std::move(holders), [&] { loop_->stop(); });
    run();
    EXPECT_EQ(client_->jobs(), 0U) << point;
    client_.reset();
    arm_kill_point("");
  }
}

TEST_F(HelperClientTest, ManyJobsAtOnceAreAllAnsweredOnce) {
  start();
  constexpr int kJobs = 100;
  int answers = 0;
  for (int count = 0; count < kJobs; ++count) {
    const std::array<std::uint64_t, 1> sizes = {4096};
    client_->reserve(sizes, 0, [&](Result<Done> done) {
      EXPECT_TRUE(done);
      if (++answers == kJobs) loop_->stop();
    });
  }
  run();
  EXPECT_EQ(answers, kJobs);
}

TEST_F(HelperClientTest, TheHelperHoldsNothingOfTheDaemonsAndHasItsOwnName) {
  const Fd secret(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const Fd moved(::fcntl(secret.get(), F_DUPFD_CLOEXEC, 100));
  start();
  ASSERT_TRUE(reserve({4096}));  // it is up
  std::string name;
  std::ifstream(format("/proc/{}/comm", client_->pid())) >> name;
  EXPECT_EQ(name, "wc-helper");
  EXPECT_NE(::access(format("/proc/{}/fd/{}", client_->pid(), moved.get()).c_str(), F_OK), 0);
}

TEST_F(HelperClientTest, ATerminalsSignalsDoNotEndTheHelper) {
  start();
  ASSERT_TRUE(reserve({4096}));
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::kill(client_->pid(), number);
  EXPECT_TRUE(reserve({4096}));
}

TEST_F(HelperClientTest, TheHelperEndsWithItsClient) {
  start();
  ASSERT_TRUE(reserve({4096}));
  const pid_t helper = client_->pid();
  client_.reset();
  EXPECT_EQ(::kill(helper, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

// ---- sealing
// --------------------------------------------------------------------------------------

// Memory as a loader leaves it: written, unmapped, with its manifest.
struct Filled {
  std::vector<std::uint64_t> sizes;
  std::vector<Fd> writable;
  std::string fingerprint;
};

class SealTest : public HelperClientTest {
 protected:
  Filled fill(const support::SampleOptions& options) {
    const auto sample = support::sample_manifest(options);
    Filled filled{options.segments, {}, sample.fingerprint};
    auto done = reserve(options.segments, sample.bytes.size());
    EXPECT_TRUE(done) << done.error().message;
    if (!done) return filled;
    filled.writable = std::move(done->descriptors);
    const auto written =
        ::pwrite(filled.writable.back().get(), sample.bytes.data(), sample.bytes.size(), 0);
    EXPECT_EQ(written, std::ssize(sample.bytes));
    return filled;
  }
};

TEST_F(SealTest, WhatIsSealedIsReadOnlyAndSummed) {
  start();
  auto filled = fill({"seal", {kMiB, 2 * kMiB}, 100});
  auto done = seal(filled.sizes, filled.writable, filled.fingerprint);
  ASSERT_TRUE(done) << done.error().message;
  ASSERT_EQ(done->descriptors.size(), 3U);
  EXPECT_EQ(done->job.tensors, 200U);
  for (const Fd& file : done->descriptors) {
    EXPECT_EQ(::fcntl(file.get(), F_GETFL) & O_ACCMODE, O_RDONLY);
  }
  EXPECT_EQ(::pwrite(filled.writable[0].get(), "x", 1, 0), -1);
  EXPECT_EQ(errno, EPERM);
}

TEST_F(SealTest, AMappingThatMayStillWriteIsBusy) {
  start();
  auto filled = fill({"seal", {kMiB}, 1});
  auto writing = Mapping::map(filled.writable[0], {kMiB, PROT_READ | PROT_WRITE, MAP_SHARED, 0});
  ASSERT_TRUE(writing);
  auto done = seal(filled.sizes, filled.writable, filled.fingerprint);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::busy);
  EXPECT_THAT(done.error().message, HasSubstr("segment 0"));
}

TEST_F(SealTest, AnotherFingerprintIsAMismatch) {
  start();
  auto filled = fill({"seal", {kMiB}, 1});
  auto done = seal(filled.sizes, filled.writable, std::string(32, '0'));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::mismatch);
  EXPECT_THAT(done.error().message, HasSubstr(filled.fingerprint));
}

TEST_F(SealTest, AManifestOfOtherSegmentsIsCorrupt) {
  start();
  auto filled = fill({"seal", {kMiB}, 1});
  const auto other = support::sample_manifest({"seal", {2 * kMiB}, 1});
  ASSERT_EQ(::pwrite(filled.writable.back().get(), other.bytes.data(), other.bytes.size(), 0),
            std::ssize(other.bytes));
  auto done = seal(filled.sizes, filled.writable, filled.fingerprint);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::corrupt);
  EXPECT_THAT(done.error().message, HasSubstr("2,097,152"));
}

TEST_F(SealTest, GarbageInTheManifestIsCorrupt) {
  start();
  auto filled = fill({"seal", {kMiB}, 1});
  ASSERT_EQ(::pwrite(filled.writable.back().get(), "garbage!", 8, 0), 8);
  auto done = seal(filled.sizes, filled.writable, filled.fingerprint);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::corrupt);
}

TEST_F(SealTest, AHoleInASegmentIsCorrupt) {
  start();
  auto filled = fill({"seal", {kMiB}, 1});
  ASSERT_EQ(
      ::fallocate(filled.writable[0].get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 8192, 4096),
      0);
  auto done = seal(filled.sizes, filled.writable, filled.fingerprint);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::corrupt);
}

TEST_F(SealTest, ACheckThatIsKilledFailsAloneAndLeavesTheMemory) {
  start("helper.sealed");
  auto filled = fill({"seal", {kMiB}, 1});
  auto done = seal(filled.sizes, filled.writable, filled.fingerprint);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::exhausted);
  EXPECT_TRUE(reserve({4096}));
}

}  // namespace
}  // namespace wc::daemon
