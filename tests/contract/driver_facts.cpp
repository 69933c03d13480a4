// What the product relies on in the CUDA driver itself, call by call. Two programs from one source,
// as cuda_contract.cpp: the simulation imitates what is asserted here, and the real driver proves
// it.
#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/units.hpp"
#include "memory/cuda/gpu.hpp"
#include "memory/cuda/handles.hpp"
#include "memory/cuda/vmm.hpp"

namespace wc::memory::cuda {
namespace {

#ifdef WC_SIMULATED_DRIVER
constexpr const char* kDriver = WC_SIMULATED_DRIVER;
#else
constexpr const char* kDriver = "";
#endif

class DriverFacts : public testing::Test {
 protected:
  static void SetUpTestSuite() {
#ifdef WC_SIMULATED_DRIVER
    folder_ = (std::filesystem::temp_directory_path() / "weightcache-sim-XXXXXX").string();
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
    ::setenv("WEIGHTCACHE_SIM_DIR", folder_.c_str(), 1);
#endif
    if (auto opened = open_driver(kDriver)) driver_ = std::move(*opened);
  }
  static void TearDownTestSuite() {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  void SetUp() override {
    if (!driver_) GTEST_SKIP() << "no GPU here";
    auto gpu = find_gpu(*driver_, "0");
    ASSERT_TRUE(gpu) << gpu.error().message;
    auto context = retain_context(*driver_, gpu->device);
    ASSERT_TRUE(context) << context.error().message;
    context_ = std::move(*context);
    auto current = CurrentContext::push(*driver_, context_);
    ASSERT_TRUE(current);
    current_.emplace(std::move(*current));
    auto recipe = find_recipe(*driver_, *gpu);
    ASSERT_TRUE(recipe) << recipe.error().message;
    recipe_ = *recipe;
    granularity_ = granularity_of(*driver_, *gpu).value_or(0);
  }

  [[nodiscard]] PhysicalMemory memory_of(std::size_t bytes) const {
    auto memory = create_memory(*driver_, bytes, recipe_.prop);
    EXPECT_TRUE(memory) << memory.error().message;
    return std::move(*memory);
  }
  [[nodiscard]] AddressRange range_of(std::size_t bytes) const {
    auto range = reserve_range(*driver_, bytes, 0);
    EXPECT_TRUE(range) << range.error().message;
    return std::move(*range);
  }
  [[nodiscard]] CuResult map(const AddressRange& range, std::size_t bytes, std::size_t offset,
                             const PhysicalMemory& memory) const {
    const CuResult result = driver_->cuMemMap(range.get().address, bytes, offset, memory.get(), 0);
    if (result == CuResult::success) (void)driver_->cuMemUnmap(range.get().address, bytes);
    return result;
  }
  [[nodiscard]] Result<> access(const Range& range, int flags) const {
    return set_access(*driver_, range, context_.get().device, flags);
  }
  [[nodiscard]] CuResult copy_to(CuDevicePtr address, const std::vector<char>& bytes) const {
    auto stream = create_stream(*driver_);
    EXPECT_TRUE(stream);
    const CuResult sent =
        driver_->cuMemcpyHtoDAsync(address, bytes.data(), bytes.size(), stream->get());
    return sent != CuResult::success ? sent : driver_->cuStreamSynchronize(stream->get());
  }

  inline static std::optional<Driver> driver_;
  inline static std::string folder_;
  PrimaryContext context_;
  std::optional<CurrentContext> current_;
  Recipe recipe_;
  std::size_t granularity_ = 0;
};

TEST_F(DriverFacts, SizesAreMultiplesOfTheGranularity) {
  EXPECT_EQ(granularity_, 2 * kMiB);
  const auto odd = create_memory(*driver_, 2 * kMiB + 4096, recipe_.prop);
  ASSERT_FALSE(odd);
  EXPECT_EQ(odd.error().origin, "CUDA_ERROR_INVALID_VALUE");
  EXPECT_FALSE(create_memory(*driver_, 0, recipe_.prop));
}

TEST_F(DriverFacts, AskingForMoreThanTheDeviceHasIsOutOfMemory) {
  std::size_t free = 0;
  std::size_t total = 0;
  ASSERT_EQ(driver_->cuMemGetInfo(&free, &total), CuResult::success);
  const auto granules = total / (2 * kMiB) + 1;
  const auto memory = create_memory(*driver_, granules * 2 * kMiB, recipe_.prop);
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().code, Code::exhausted);
  EXPECT_EQ(memory.error().origin, "CUDA_ERROR_OUT_OF_MEMORY");
}

TEST_F(DriverFacts, OnlyTheCreatorExports) {
  const auto memory = memory_of(2 * kMiB);
  auto first = export_memory(*driver_, memory);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_TRUE(export_memory(*driver_, memory)) << "twice";
  const auto imported = import_memory(*driver_, *first);
  ASSERT_TRUE(imported) << imported.error().message;
  const auto again = export_memory(*driver_, *imported);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().origin, "CUDA_ERROR_INVALID_VALUE");
}

TEST_F(DriverFacts, MemoryIsMappedWholeAndFromItsStart) {
  const auto memory = memory_of(4 * kMiB);
  const auto range = range_of(8 * kMiB);
  EXPECT_EQ(map(range, 4 * kMiB, 0, memory), CuResult::success);
  EXPECT_EQ(map(range, 2 * kMiB, 2 * kMiB, memory), CuResult::not_supported) << "from an offset";
  EXPECT_EQ(map(range, 2 * kMiB, 0, memory), CuResult::not_supported) << "less than there is";
  EXPECT_EQ(map(range, 8 * kMiB, 0, memory), CuResult::not_supported) << "more than there is";
}

TEST_F(DriverFacts, AccessIsOfAWholeMapping) {
  const auto memory = memory_of(4 * kMiB);
  const auto range = range_of(4 * kMiB);
  const auto mapped = map_memory(*driver_, range, memory, 4 * kMiB);
  ASSERT_TRUE(mapped) << mapped.error().message;
  ASSERT_TRUE(access(mapped->get(), kAccessReadWrite));
  const auto part = access(Range{mapped->get().address, 2 * kMiB}, kAccessRead);
  ASSERT_FALSE(part);
  EXPECT_EQ(part.error().origin, "CUDA_ERROR_INVALID_VALUE");
}

TEST_F(DriverFacts, ReadOnlyRefusesCopiesAndAnImporterMayRaiseIt) {
  const auto memory = memory_of(2 * kMiB);
  const auto fd = export_memory(*driver_, memory);
  ASSERT_TRUE(fd);
  const auto imported = import_memory(*driver_, *fd);
  ASSERT_TRUE(imported);
  const auto range = range_of(2 * kMiB);
  const auto mapped = map_memory(*driver_, range, *imported, 2 * kMiB);
  ASSERT_TRUE(mapped);
  const std::vector<char> bytes(4096, 'x');
  ASSERT_TRUE(access(mapped->get(), kAccessRead));
  EXPECT_EQ(copy_to(mapped->get().address, bytes), CuResult::invalid_value);
  ASSERT_TRUE(access(mapped->get(), kAccessReadWrite)) << "a guard against bugs, no border";
  EXPECT_EQ(copy_to(mapped->get().address, bytes), CuResult::success);
}

TEST_F(DriverFacts, AnAddressHintIsFollowedWhereItIsFree) {
  for (const CuDevicePtr wanted : {0x1000'0000'0000ULL, 0x2000'0000'0000ULL, 0x7e00'0000'0000ULL}) {
    const auto range = reserve_range(*driver_, 4 * kMiB, wanted);
    ASSERT_TRUE(range) << range.error().message;
    EXPECT_EQ(range->get().address, wanted);
    const auto taken = reserve_range(*driver_, 4 * kMiB, wanted);
    ASSERT_FALSE(taken);
    EXPECT_EQ(taken.error().code, Code::busy) << taken.error().message;
  }
}

TEST_F(DriverFacts, AHintForASmallRangeIsNotFollowed) {
  constexpr CuDevicePtr kWanted = 0x1000'0000'0000ULL;
  CuDevicePtr address = 0;
  ASSERT_EQ(driver_->cuMemAddressReserve(&address, 4 * kMiB, 0, kWanted, 0), CuResult::success);
  EXPECT_NE(address, kWanted) << "then kSmallestHintedRange is needed no more";
  ASSERT_EQ(driver_->cuMemAddressFree(address, 4 * kMiB), CuResult::success);
}

TEST_F(DriverFacts, WhatIsNoMemoryIsNotImported) {
  std::array<int, 2> ends = {};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const Fd read_end(ends[0]);
  const Fd write_end(ends[1]);
  const auto imported = import_memory(*driver_, read_end);
  ASSERT_FALSE(imported);
  EXPECT_FALSE(imported.error().origin.empty());
}

}  // namespace
}  // namespace wc::memory::cuda
