#include "memory/cuda/nvml.hpp"

#include <cstdlib>

#include <gtest/gtest.h>

#include "tests/support/simulation.hpp"

namespace wc::memory::cuda {
namespace {

using support::Simulation;

/// One of the simulation's variables, for as long as it lives.
class Told {
 public:
  Told(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  Told(const Told&) = delete;
  Told& operator=(const Told&) = delete;
  ~Told() { ::unsetenv(name_); }

 private:
  const char* name_;
};

Result<NvmlReport> ask() {
  (void)Simulation::only();  // its folder is in the environment from here on
  return ask_nvml(WC_SIMULATED_NVML);
}

TEST(NvmlTest, EveryGpuIsToldOfWhateverTheProcessMayUse) {
  const Told visible("CUDA_VISIBLE_DEVICES", "1");
  const auto report = ask();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->driver_version, "580.00.00-simulated");
  ASSERT_EQ(report->gpus.size(), 2U);
  EXPECT_EQ(report->gpus[0].uuid, "GPU-051a0000-0000-0000-0000-000000000000");
  EXPECT_EQ(report->gpus[1].name, "Simulated GPU");
  EXPECT_EQ(report->gpus[0].persistence_mode, true);
  EXPECT_FALSE(report->gpus[0].mig_mode) << "a GPU without MIG";
  EXPECT_EQ(report->gpus[0].total_bytes, std::uint64_t{1} << 30);
}

TEST(NvmlTest, PersistenceAndMigAreToldAsTheyAre) {
  const Told off("WEIGHTCACHE_SIM_PERSISTENCE", "off");
  const Told pending("WEIGHTCACHE_SIM_MIG", "pending");
  const auto report = ask();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->gpus.at(0).persistence_mode, false);
  EXPECT_EQ(report->gpus.at(0).mig_mode, false);
  EXPECT_EQ(report->gpus.at(0).mig_pending, true);
}

TEST(NvmlTest, WhatCannotBeAskedIsLeftOpenAndTheRestIsTold) {
  const Told refused("WEIGHTCACHE_SIM_NVML_FAIL", "nvmlDeviceGetMemoryInfo");
  const auto report = ask();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->gpus.at(0).total_bytes, 0U);
  EXPECT_EQ(report->gpus.at(0).persistence_mode, true);
}

TEST(NvmlTest, ARefusalToStartIsNamed) {
  const Told refused("WEIGHTCACHE_SIM_NVML_FAIL", "nvmlInit");
  const auto report = ask();
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, Code::unsupported);
  EXPECT_EQ(report.error().message, "nvmlInit: Simulated error");
}

TEST(NvmlTest, NoLibraryAndAnotherLibraryAreUnsupported) {
  const auto none = ask_nvml("/nonexistent/libnvidia-ml.so.1");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::unsupported);
  EXPECT_NE(none.error().message.find("/nonexistent/libnvidia-ml.so.1"), std::string::npos);
  const auto other = ask_nvml("libc.so.6");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Code::unsupported);
}

TEST(NvmlTest, TheEnvironmentNamesTheLibrary) {
  (void)Simulation::only();
  const Told library("WEIGHTCACHE_LIBNVML", WC_SIMULATED_NVML);
  EXPECT_TRUE(ask_nvml());
}

}  // namespace
}  // namespace wc::memory::cuda
