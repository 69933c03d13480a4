#include "memory/cuda/driver.hpp"

#include <cstdlib>

#include <gtest/gtest.h>

#include "memory/cuda/gpu.hpp"
#include "tests/support/simulation.hpp"

namespace wc::memory::cuda {
namespace {

using support::Simulation;

// A process of its own, executed anew: the simulation reads its environment once.
template <typename Body>
void in_child(Body body) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        body();
        std::exit(testing::Test::HasFailure() ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
}

TEST(DriverTest, OpensTheLibraryItIsGiven) {
  const auto driver = Simulation::only().open();
  ASSERT_TRUE(driver);
  EXPECT_EQ(driver->version, 13000);
  EXPECT_TRUE(driver->has_vmm());
}

TEST(DriverTest, NoLibraryIsUnsupported) {
  const auto driver = open_driver("/nonexistent/libcuda.so.1");
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.error().code, Code::unsupported);
  EXPECT_NE(driver.error().message.find("/nonexistent/libcuda.so.1"), std::string::npos);
}

TEST(DriverTest, LibraryThatIsNoDriverIsUnsupported) {
  const auto driver = open_driver("libc.so.6");
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.error().code, Code::unsupported);
  EXPECT_NE(driver.error().message.find("cuGetProcAddress"), std::string::npos);
}

TEST(DriverTest, MissingOptionalFunctionsAreACapabilityLess) {
  in_child([] {
    ::setenv("WEIGHTCACHE_SIM_MISSING", "cuMemCreate", 1);
    const auto driver = Simulation::only().open();
    ASSERT_TRUE(driver);
    EXPECT_FALSE(driver->has_vmm());
    const auto gpus = list_gpus(*driver);
    ASSERT_TRUE(gpus);
    EXPECT_FALSE(gpus->front().vmm);
  });
}

TEST(DriverTest, MissingRequiredFunctionIsUnsupportedAndNamed) {
  in_child([] {
    ::setenv("WEIGHTCACHE_SIM_MISSING", "cuStreamCreate", 1);
    const auto driver = open_driver(Simulation::only().path());
    ASSERT_FALSE(driver);
    EXPECT_EQ(driver.error().code, Code::unsupported);
    EXPECT_NE(driver.error().message.find("cuStreamCreate"), std::string::npos);
  });
}

TEST(DriverTest, NoGpuIsUnsupportedAndSaysSo) {
  in_child([] {
    ::setenv("CUDA_VISIBLE_DEVICES", "", 1);
    const auto driver = open_driver(Simulation::only().path());
    ASSERT_FALSE(driver);
    EXPECT_EQ(driver.error().code, Code::unsupported);
    EXPECT_EQ(driver.error().origin, "CUDA_ERROR_NO_DEVICE");
  });
}

TEST(DriverTest, ErrorsCarryTheCallAndTheResultByName) {
  const auto driver = Simulation::only().open();
  const auto error = check(*driver, "cuMemMap", CuResult::illegal_address);
  ASSERT_FALSE(error);
  EXPECT_EQ(error.error().code, Code::device);
  EXPECT_EQ(error.error().message, "cuMemMap: CUDA_ERROR_ILLEGAL_ADDRESS");
  EXPECT_EQ(error.error().origin, "CUDA_ERROR_ILLEGAL_ADDRESS");
  EXPECT_EQ(check(*driver, "x", CuResult::out_of_memory).error().code, Code::exhausted);
  EXPECT_EQ(name_of(*driver, static_cast<CuResult>(4242)), "CUresult 4242");
}

TEST(GpuTest, IsFoundByOrdinalAndByUuid) {
  const auto driver = Simulation::only().open();
  const auto gpus = list_gpus(*driver);
  ASSERT_TRUE(gpus);
  ASSERT_EQ(gpus->size(), 2U);
  const Gpu& second = gpus->at(1);
  for (const std::string& which :
       {std::string("1"), std::string("cuda:1"), second.uuid, second.uuid.substr(4)}) {
    const auto found = find_gpu(*driver, which);
    ASSERT_TRUE(found) << which << ": " << found.error().message;
    EXPECT_EQ(found->uuid, second.uuid);
  }
  EXPECT_EQ(find_gpu(*driver, "GPU-051a").error().code, Code::invalid_argument);
}

TEST(GpuTest, AbsentOneIsNotFoundWithWhatIsVisible) {
  const auto driver = Simulation::only().open();
  for (const char* which : {"cuda:7", "GPU-ffffffff", "gpu", "-1", ""}) {
    const auto found = find_gpu(*driver, which);
    ASSERT_FALSE(found) << which;
    EXPECT_EQ(found.error().code, Code::not_found);
    EXPECT_NE(found.error().message.find("cuda:1"), std::string::npos);
  }
}

TEST(GpuTest, ReorderedOrdinalsKeepTheirUuids) {
  in_child([] {
    ::setenv("CUDA_VISIBLE_DEVICES", "1,0", 1);
    const auto driver = Simulation::only().open();
    const auto gpus = list_gpus(*driver);
    ASSERT_EQ(gpus->size(), 2U);
    EXPECT_TRUE(gpus->at(0).uuid.ends_with("01"));
    EXPECT_TRUE(gpus->at(1).uuid.ends_with("00"));
  });
  in_child([] {
    ::setenv("CUDA_VISIBLE_DEVICES", "GPU-051a0000-0000-0000-0000-000000000001", 1);
    const auto driver = Simulation::only().open();
    const auto hidden = find_gpu(*driver, "GPU-051a0000-0000-0000-0000-000000000000");
    ASSERT_FALSE(hidden);
    EXPECT_EQ(hidden.error().code, Code::not_found);
    EXPECT_NE(hidden.error().message.find("CUDA_VISIBLE_DEVICES is \"GPU-051a"), std::string::npos);
  });
}

}  // namespace
}  // namespace wc::memory::cuda
