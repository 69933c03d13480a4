#include "memory/cuda/cuda_device.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "tests/support/simulation.hpp"

namespace wc::memory::cuda {
namespace {

using support::Simulation;

constexpr std::uint64_t kBlock = std::uint64_t{64} << 10;

std::vector<std::byte> pattern(std::size_t bytes) {
  std::vector<std::byte> out(bytes);
  for (std::size_t at = 0; at < bytes; ++at) out[at] = static_cast<std::byte>(at * 31 + at / 251);
  return out;
}

// Fills a segment through the ring, block by block, in two runs each.
Result<> fill(Writer& writer, std::span<const std::byte> bytes) {
  for (std::uint64_t at = 0; at < bytes.size(); at += kBlock) {
    const auto block = TRY(writer.stage(kBlock));
    std::ranges::copy(bytes.subspan(at, kBlock), block.begin());
    const Run runs[] = {{0, at, kBlock / 2, 0}, {kBlock / 2, at + kBlock / 2, kBlock / 2, 0}};
    TRY(writer.copy_in(block, runs));
  }
  return writer.finish();
}

// The whole life of a segment: made, filled, frozen, handed over, read by another mapping.
Result<bool> live(const std::string& path) {
  auto opened = TRY(open_driver(path));
  auto device = TRY(open_cuda_device(std::make_shared<const Driver>(std::move(opened)), "cuda:0"));
  const auto expected = pattern(4 * kBlock);
  auto segment = TRY(device->create(expected.size()));
  Handle handle = TRY(segment->export_handle());
  {
    auto view = TRY(device->map(*segment));
    View* const views[] = {view.get()};
    {
      auto writer = TRY(device->writer(views, kBlock));
      TRY(fill(*writer, expected));
    }
    TRY(view->make_read_only());
  }
  segment.reset();
  ImportOptions options;
  options.bytes = device->info().granularity_bytes;
  auto view = TRY(device->import(std::move(handle), options));
  View* const views[] = {view.get()};
  auto reader = TRY(device->writer(views, kBlock));
  std::vector<std::byte> found(expected.size());
  TRY(reader->copy_out(0, 0, found));
  return found == expected;
}

TEST(CudaDeviceTest, SegmentLivesThroughItsDescriptor) {
  const auto equal = live(Simulation::only().path());
  ASSERT_TRUE(equal) << equal.error().message;
  EXPECT_TRUE(*equal);
  EXPECT_EQ(Simulation::only().leaks(), "");
  EXPECT_EQ(Simulation::only().used_bytes(), 0U);
}

// Every driver call at every position: an error that names the call, nothing leaked, nothing wrong.
TEST(CudaDeviceTest, AnyCallMayFailAtAnyPosition) {
  const Simulation& simulation = Simulation::only();
  constexpr CuResult kResults[] = {CuResult::unknown, CuResult::out_of_memory};
  for (const CuResult result : kResults) {
    std::uint64_t nth = 1;
    std::uint64_t errors = 0;
    for (;; ++nth) {
      ASSERT_LT(nth, 1000U);
      simulation.fail_nth(nth, result);
      const auto equal = live(simulation.path());
      if (equal) {
        EXPECT_TRUE(*equal) << "call " << nth;
      } else {
        ++errors;
        EXPECT_NE(equal.error().message.find("cu"), std::string::npos) << equal.error().message;
        EXPECT_FALSE(equal.error().origin.empty()) << equal.error().message;
      }
      const bool reached = simulation.failed() > 0;
      simulation.fail_nth(0, result);
      ASSERT_EQ(simulation.leaks(), "") << "after call " << nth << " failed";
      ASSERT_EQ(simulation.used_bytes(), 0U) << "after call " << nth << " failed";
      if (!reached) break;
    }
    EXPECT_GT(nth, 50U);
    EXPECT_GT(errors, 40U);
  }
}

TEST(CudaDeviceTest, FullDeviceSaysHowMuchIsNeededAndFree) {
  auto device = open_cuda_device(Simulation::only().open(), "0");
  ASSERT_TRUE(device) << device.error().message;
  auto most = (*device)->create((*device)->info().total_bytes - (std::uint64_t{4} << 20));
  ASSERT_TRUE(most) << most.error().message;
  const auto more = (*device)->create(std::uint64_t{8} << 20);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, Code::exhausted);
  EXPECT_EQ(more.error().origin, "CUDA_ERROR_OUT_OF_MEMORY");
  EXPECT_NE(more.error().message.find("8.0 MiB are needed"), std::string::npos);
  EXPECT_NE(more.error().message.find("4.0 MiB are free"), std::string::npos);
}

TEST(CudaDeviceTest, DescriptorThatIsSmallerThanItSaysIsCorrupt) {
  auto device = open_cuda_device(Simulation::only().open(), "0");
  ASSERT_TRUE(device);
  auto segment = (*device)->create(1);
  ASSERT_TRUE(segment);
  auto handle = (*segment)->export_handle();
  ASSERT_TRUE(handle);
  ImportOptions options;
  options.bytes = (*segment)->bytes() * 2;
  const auto view = (*device)->import(std::move(*handle), options);
  ASSERT_FALSE(view);
  EXPECT_EQ(view.error().code, Code::corrupt) << view.error().message;
}

TEST(CudaDeviceTest, DescriptorOfAnotherGpuIsCorrupt) {
  auto first = open_cuda_device(Simulation::only().open(), "0");
  auto second = open_cuda_device(Simulation::only().open(), "1");
  ASSERT_TRUE(first && second);
  auto segment = (*second)->create(1);
  ASSERT_TRUE(segment);
  auto handle = (*segment)->export_handle();
  ASSERT_TRUE(handle);
  ImportOptions options;
  options.bytes = (*segment)->bytes();
  const auto view = (*first)->import(std::move(*handle), options);
  ASSERT_FALSE(view);
  EXPECT_EQ(view.error().code, Code::corrupt) << view.error().message;
}

TEST(CudaDeviceTest, PrivateMappingsAreRefused) {
  auto device = open_cuda_device(Simulation::only().open(), "0");
  auto segment = (*device)->create(1);
  auto handle = (*segment)->export_handle();
  ImportOptions options;
  options.bytes = (*segment)->bytes();
  options.access = Access::private_copy;
  EXPECT_EQ((*device)->import(std::move(*handle), options).error().code, Code::invalid_argument);
}

}  // namespace
}  // namespace wc::memory::cuda
