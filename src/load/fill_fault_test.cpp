// What goes wrong while files are loaded: reads that fail, files that change, devices that give up,
// callers that change their mind. Nothing half done may pass for done.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.hpp"
#include "load/fill.hpp"
#include "tests/support/loading.hpp"

namespace wc::load {
namespace {

using support::Loading;
using support::made_tensor;
using support::MadeShard;
using testing::HasSubstr;

const std::string kFirst = "model-00001-of-00002.safetensors";

class FillFaultTest : public testing::TestWithParam<bool> {
 protected:
  FillFaultTest() : loading_(support::odd_shards(), make_device()) {}

  std::unique_ptr<memory::Device> make_device() {
    if (!GetParam()) return support::open_host();
    auto device = std::make_unique<support::StagingDevice>(support::open_host());
    staging_ = device.get();
    return device;
  }

  // Before the n-th read, once.
  void before_read(std::uint64_t wanted, std::function<void()> change) {
    loading_.files().on_read = [=](std::uint64_t number) -> std::optional<ssize_t> {
      if (number == wanted) change();
      return std::nullopt;
    };
  }

  support::StagingDevice* staging_ = nullptr;
  Loading loading_;
};

INSTANTIATE_TEST_SUITE_P(Devices, FillFaultTest, testing::Bool(),
                         [](const auto& tested) { return tested.param ? "Staged" : "InPlace"; });

TEST_P(FillFaultTest, FailureOfAnyReadEndsTheLoadByName) {
  std::uint64_t n = 1;
  for (; n < 1000; ++n) {
    loading_.files().restart();
    loading_.files().on_read = [=](std::uint64_t number) -> std::optional<ssize_t> {
      return number == n ? std::optional<ssize_t>(-EIO) : std::nullopt;
    };
    const auto result = loading_.fill({.tier = Tier::hot});
    if (result) break;
    ASSERT_EQ(result.error().code, Code::io);
    ASSERT_EQ(result.error().origin, "EIO");
    ASSERT_THAT(result.error().message, HasSubstr(".safetensors\": read at byte"));
  }
  EXPECT_GT(n, 5U) << "reads that could fail";
  EXPECT_LT(n, 1000U);
  loading_.expect_loaded();
}

TEST_P(FillFaultTest, EndOfFileAtAnyReadIsCorrupt) {
  std::uint64_t n = 1;
  for (; n < 1000; ++n) {
    loading_.files().restart();
    loading_.files().on_read = [=](std::uint64_t number) -> std::optional<ssize_t> {
      return number == n ? std::optional<ssize_t>(0) : std::nullopt;
    };
    const auto result = loading_.fill({.tier = Tier::hot});
    if (result) break;
    ASSERT_EQ(result.error().code, Code::corrupt);
    ASSERT_THAT(result.error().message, HasSubstr("shrank"));
  }
  EXPECT_GT(n, 5U);
  EXPECT_LT(n, 1000U);
}

TEST_P(FillFaultTest, ShortReadsChangeNothing) {
  for (const Tier tier : {Tier::hot, Tier::direct, Tier::buffered}) {
    for (const std::uint64_t most : {777'777U, 65'536U}) {
      loading_.files().most_bytes = most;
      loading_.wipe();
      const auto result = loading_.fill({.tier = tier});
      ASSERT_TRUE(result) << result.error().message;
      loading_.expect_loaded();
    }
  }
}

TEST_P(FillFaultTest, AnyErrorOfADirectReadFallsBackForTheMount) {
  for (const int error : {EINVAL, EIO, ENOTSUP, EFAULT}) {
    std::vector<std::string> lines;
    set_log([&](Level level, std::string_view line) {
      if (level >= Level::info) lines.emplace_back(line);
    });
    MountMemory mounts;
    loading_.files().restart();
    loading_.files().on_read = [=](std::uint64_t number) -> std::optional<ssize_t> {
      return number == 1 ? std::optional<ssize_t>(-error) : std::nullopt;
    };
    loading_.wipe();
    const auto result =
        fill_in({loading_.files(), mounts}, loading_.parts(), {.tier = Tier::direct, .threads = 1});
    set_log({});
    ASSERT_TRUE(result) << result.error().message;
    loading_.expect_loaded();
    EXPECT_FALSE(mounts.direct_works(loading_.checkpoint().shards()[0].receipt.device));
    EXPECT_EQ(lines.size(), 1U) << "once a mount";
    EXPECT_EQ(result->tier, Tier::buffered);
  }
}

TEST_P(FillFaultTest, MountsWithoutDirectReadsAreReadThroughTheCache) {
  loading_.files().grant_direct = false;
  loading_.drop_caches();
  loading_.wipe();
  for (const Tier tier : {Tier::direct, Tier::direct_uring, Tier::automatic}) {
    const auto result = loading_.fill({.tier = tier});
    ASSERT_TRUE(result) << result.error().message;
    loading_.expect_loaded();
  }
}

TEST_P(FillFaultTest, FailureOfAnyCallOfTheDeviceEndsTheLoad) {
  if (staging_ == nullptr) GTEST_SKIP() << "host memory has no calls that fail";
  std::uint64_t n = 1;
  for (; n < 1000; ++n) {
    staging_->fail_at(n);
    const auto result = loading_.fill({.threads = 2});
    if (result) break;
    ASSERT_EQ(result.error().code, Code::device);
  }
  staging_->fail_at(0);
  EXPECT_GT(n, 8U);
  EXPECT_LT(n, 1000U);
  loading_.expect_loaded();
}

TEST_P(FillFaultTest, CancelledBeforeItBeginsReadsNothing) {
  const std::atomic<bool> cancel = true;
  const auto result = loading_.fill({.cancel = &cancel});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::cancelled);
  EXPECT_EQ(loading_.files().reads(), 0U);
}

TEST_P(FillFaultTest, CancelledMeanwhileEndsSoon) {
  std::atomic<bool> cancel = false;
  before_read(2, [&] { cancel = true; });
  const auto result = loading_.fill({.tier = Tier::hot, .threads = 1, .cancel = &cancel});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::cancelled);
  EXPECT_LT(loading_.files().reads(), 10U);
}

TEST_P(FillFaultTest, ShrunkFileIsCorrupt) {
  loading_.files().grant_leases = false;
  const std::string path = loading_.path(kFirst);
  before_read(1, [=] { std::filesystem::resize_file(path, 4'200'000); });
  const auto result = loading_.fill({.threads = 1});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::corrupt);
  EXPECT_THAT(result.error().message, HasSubstr(kFirst));
}

TEST_P(FillFaultTest, ShrunkFileIsCorruptForDirectReadsToo) {
  for (const Tier tier : {Tier::direct, Tier::direct_uring}) {
    loading_.files().grant_leases = false;
    loading_.files().restart();
    const std::string path = loading_.path(kFirst);
    const auto size = std::filesystem::file_size(path);
    std::filesystem::resize_file(path, 1'000'000);
    const auto result = loading_.fill({.tier = tier, .threads = 1});
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::corrupt);
    std::filesystem::resize_file(path, size);
  }
}

TEST_P(FillFaultTest, BytesWrittenMeanwhileAreNoticedByTheReceipt) {
  loading_.files().grant_leases = false;
  const std::string path = loading_.path(kFirst);
  before_read(3, [=] {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(5'000'000);
    file.put('x');
  });
  const auto result = loading_.fill();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::corrupt);
  EXPECT_THAT(result.error().message, HasSubstr(kFirst));
}

TEST_P(FillFaultTest, FileReplacedMeanwhileIsNoticed) {
  loading_.files().grant_leases = false;
  const std::string path = loading_.path(kFirst);
  before_read(2, [=] {
    std::filesystem::copy_file(path, path + ".new");
    std::filesystem::rename(path + ".new", path);
  });
  const auto result = loading_.fill();
  ASSERT_FALSE(result) << "the name stands for another file now";
  EXPECT_EQ(result.error().code, Code::corrupt);
}

TEST_P(FillFaultTest, FileChangedBeforeTheLoadIsNotRead) {
  const std::string path = loading_.path(kFirst);
  std::ofstream(path, std::ios::binary | std::ios::app).put('x');
  const auto result = loading_.fill();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::corrupt);
  EXPECT_EQ(loading_.files().reads(), 0U);
}

TEST_P(FillFaultTest, WriterThatBreaksTheLeaseEndsTheLoad) {
  const std::string path = loading_.path(kFirst);
  before_read(2, [=] {
    const Fd writer(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    EXPECT_FALSE(writer) << "the lease keeps writers out";
  });
  const auto result = loading_.fill();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::corrupt);
  EXPECT_THAT(result.error().message, HasSubstr("opened for writing"));
  const Fd writer(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_TRUE(writer) << "the lease is gone with the load";
}

TEST_P(FillFaultTest, NothingIsLeftOpen) {
  const auto count = [] {
    const std::filesystem::directory_iterator folder("/proc/self/fd");
    return std::distance(begin(folder), end(folder));
  };
  ASSERT_TRUE(loading_.fill());
  const auto before = count();
  for (const Tier tier : {Tier::hot, Tier::direct_uring, Tier::direct, Tier::buffered}) {
    ASSERT_TRUE(loading_.fill({.tier = tier}));
    loading_.files().restart();
    loading_.files().on_read = [](std::uint64_t number) -> std::optional<ssize_t> {
      return number >= 2 ? std::optional<ssize_t>(-EIO) : std::nullopt;
    };
    EXPECT_FALSE(loading_.fill({.tier = tier}));
    loading_.files().on_read = {};
  }
  EXPECT_EQ(count(), before);
}

}  // namespace
}  // namespace wc::load
