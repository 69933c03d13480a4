// The judgements, each from facts made up here; and the whole examination on the simulated machine.
#include <algorithm>
#include <cstdlib>

#include <gtest/gtest.h>

#include "doctor/container.hpp"
#include "doctor/daemon.hpp"
#include "doctor/gpus.hpp"
#include "doctor/kernel.hpp"
#include "doctor/limits.hpp"
#include "doctor/memory.hpp"
#include "tests/support/simulation.hpp"

namespace wc::doctor {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

const Finding* find(const Diagnosis& diagnosis, std::string_view check) {
  const auto found = std::ranges::find(diagnosis.findings, check, &Finding::check);
  return found == diagnosis.findings.end() ? nullptr : &*found;
}

Severity severity_of(const Diagnosis& diagnosis, std::string_view check) {
  const Finding* const finding = find(diagnosis, check);
  EXPECT_NE(finding, nullptr) << check;
  if (finding == nullptr) return Severity::ok;
  EXPECT_EQ(finding->advice.empty(), finding->severity == Severity::ok) << finding->text;
  return finding->severity;
}

bool advises(const Diagnosis& diagnosis, std::string_view check, std::string_view what) {
  const Finding* const finding = find(diagnosis, check);
  return finding != nullptr && finding->advice.find(what) != std::string::npos;
}

TEST(LimitsTest, FewDescriptorsLittleLockedMemoryAndSmallFilesAreTold) {
  Diagnosis good;
  judge_limits({.open_files = 1 << 20,
                .locked_bytes = kUnlimited,
                .file_bytes = kUnlimited,
                .address_bytes = kUnlimited},
               good);
  EXPECT_EQ(good.count(Severity::ok), good.findings.size());
  Diagnosis bad;
  judge_limits({.open_files = 1024,
                .locked_bytes = 8 << 20,
                .file_bytes = kGiB,
                .address_bytes = 8 * kGiB,
                .memory_bytes = 64 * kGiB},
               bad);
  EXPECT_EQ(severity_of(bad, "open_files"), Severity::warning);
  EXPECT_EQ(severity_of(bad, "locked_memory"), Severity::warning);
  EXPECT_EQ(severity_of(bad, "file_size"), Severity::problem);
  EXPECT_EQ(severity_of(bad, "address_space"), Severity::warning);
}

TEST(MemoryTest, AControlGroupsLimitAndSmallPagesAreTold) {
  MemoryFacts facts;
  facts.headroom = memory::Headroom{kGiB, "memory.max of control group \"/a\""};
  facts.available_bytes = 64 * kGiB;
  facts.overcommit = 2;
  facts.huge_pages = "always madvise [never]";
  facts.segments_huge = fail(Code::unsupported, "madvise(MADV_COLLAPSE)");
  facts.shm_bytes = std::uint64_t{64} << 20;
  Diagnosis diagnosis;
  judge_memory(facts, diagnosis);
  EXPECT_EQ(diagnosis.count(Severity::warning), 5U);
  EXPECT_EQ(severity_of(diagnosis, "headroom"), Severity::warning);
  EXPECT_EQ(severity_of(diagnosis, "dev_shm"), Severity::warning);
}

TEST(KernelTest, RefusedIoUringNamesWhoRefuses) {
  KernelFacts facts;
  facts.release = "6.18.1";
  facts.io_uring = fail_os(Code::unsupported, EPERM, "io_uring_setup");
  facts.seccomp = true;
  Diagnosis by_seccomp;
  judge_kernel(facts, by_seccomp);
  EXPECT_EQ(severity_of(by_seccomp, "io_uring"), Severity::warning);
  EXPECT_TRUE(advises(by_seccomp, "io_uring", "seccomp"));
  EXPECT_EQ(severity_of(by_seccomp, "release"), Severity::ok);
  facts.io_uring_disabled = 2;
  facts.memfd = fail_os(Code::io, EACCES, "memfd_create");
  Diagnosis by_setting;
  judge_kernel(facts, by_setting);
  EXPECT_TRUE(advises(by_setting, "io_uring", "kernel.io_uring_disabled=0"));
  EXPECT_EQ(severity_of(by_setting, "host_fd"), Severity::problem);
}

TEST(ContainerTest, AUserNamespaceIsAWarningAndTheFirstOneIsNone) {
  Diagnosis whole;
  judge_container({.uid_map = "         0          0 4294967295"}, whole);
  EXPECT_TRUE(whole.findings.empty());
  Diagnosis mapped;
  judge_container({.kind = "podman", .uid_map = "0 100000 65536"}, mapped);
  EXPECT_EQ(severity_of(mapped, "user_namespace"), Severity::warning);
}

TEST(DaemonTest, ADaemonThatIsAbsentIsAWarningAndOneThatRefusesAProblem) {
  Diagnosis absent;
  judge_daemon({.daemon = fail(Code::disconnected, "no daemon")}, absent);
  EXPECT_EQ(severity_of(absent, "reachable"), Severity::warning);
  Diagnosis denied;
  judge_daemon({.daemon = fail(Code::denied, "another user's")}, denied);
  EXPECT_EQ(severity_of(denied, "reachable"), Severity::problem);
}

TEST(DriverTest, NoTraceOfAGpuIsFineAndAContainerWithoutDeviceFilesIsAProblem) {
  GpuAreaFacts facts;
  facts.driver = fail(Code::unsupported, "no CUDA driver");
  facts.nvml = fail(Code::unsupported, "no NVML");
  Diagnosis none;
  judge_gpus(facts, none);
  EXPECT_EQ(severity_of(none, "cuda"), Severity::ok);
  facts.traces.kernel_gpus = 8;
  Diagnosis bare;
  judge_gpus(facts, bare);
  EXPECT_EQ(severity_of(bare, "cuda"), Severity::problem);
  EXPECT_TRUE(advises(bare, "cuda", "--gpus all"));
  facts.traces = {.kernel_gpus = 1, .nodes = {"/dev/nvidia0"}, .control = true, .uvm = true};
  facts.driver = Failure(Error{Code::unsupported, "cuInit", "CUDA_ERROR_NO_DEVICE"});
  facts.visible_devices = "7";
  Diagnosis hidden;
  judge_gpus(facts, hidden);
  EXPECT_TRUE(advises(hidden, "cuda", "CUDA_VISIBLE_DEVICES is \"7\""));
}

// An error of cuInit, or of the library before it, on a machine with all device files.
Diagnosis judged(std::string origin, std::string message = "cuInit") {
  GpuAreaFacts facts;
  facts.traces = {.kernel_gpus = 1, .nodes = {"/dev/nvidia0"}, .control = true, .uvm = true};
  facts.nvml = fail(Code::unsupported, "no NVML");
  facts.driver = Failure(Error{Code::unsupported, std::move(message), std::move(origin)});
  Diagnosis diagnosis;
  judge_gpus(facts, diagnosis);
  EXPECT_EQ(severity_of(diagnosis, "cuda"), Severity::problem);
  return diagnosis;
}

TEST(DriverTest, EachReasonWhyItDoesNotStartHasItsOwnAdvice) {
  EXPECT_TRUE(advises(judged("", "no CUDA driver"), "cuda", "libcuda.so.1"));
  EXPECT_TRUE(advises(judged("CUDA_ERROR_NOT_FOUND"), "cuda", "470 or later"));
  EXPECT_TRUE(advises(judged("CUDA_ERROR_SYSTEM_NOT_READY"), "cuda", "nvidia-fabricmanager"));
  EXPECT_TRUE(advises(judged("CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"), "cuda", "of one version"));
}

TEST(GpusTest, AGpuWhoseMemoryNvmlCannotTellKeepsWhatTheDriverSays) {
  GpuAreaFacts facts;
  facts.driver = 13000;
  GpuTrial trial;
  trial.gpu.uuid = "GPU-1";
  trial.gpu.total_bytes = kGiB;
  facts.gpus.push_back(trial);
  memory::cuda::NvmlGpu told;
  told.uuid = "GPU-1";
  told.name = "a GPU";
  facts.nvml->gpus.push_back(told);
  Diagnosis diagnosis;
  judge_gpus(facts, diagnosis);
  ASSERT_EQ(diagnosis.gpus.size(), 1U);
  EXPECT_EQ(diagnosis.gpus[0].total_bytes, kGiB);
  EXPECT_FALSE(diagnosis.gpus[0].used_known);
}

TEST(GpusTest, TheSimulatedMachineIsSeenByUuidWithItsTransports) {
  const auto& simulation = support::Simulation::only();
  const Machine machine{.libcuda = simulation.path(), .libnvml = WC_SIMULATED_NVML};
  const GpuAreaFacts facts = gather_gpus(machine);
  Diagnosis diagnosis;
  judge_gpus(facts, diagnosis);
  ASSERT_EQ(diagnosis.gpus.size(), 2U);
  EXPECT_EQ(diagnosis.gpus[0].uuid, "GPU-051a0000-0000-0000-0000-000000000000");
  EXPECT_EQ(diagnosis.gpus[1].ordinal, 1);
  EXPECT_TRUE(diagnosis.gpus[0].used_known);
  EXPECT_EQ(diagnosis.gpus[0].persistence_mode, true);
  EXPECT_EQ(severity_of(diagnosis, "vmm_fd"), Severity::ok);
  EXPECT_EQ(severity_of(diagnosis, "persistence_mode"), Severity::ok);
  EXPECT_EQ(simulation.leaks(), "");
  EXPECT_EQ(simulation.used_bytes(), 0U);
}

TEST(GpusTest, PersistenceModeOffAndAFailingExportAreTold) {
  const auto& simulation = support::Simulation::only();
  const Machine machine{.libcuda = simulation.path(), .libnvml = WC_SIMULATED_NVML};
  ::setenv("WEIGHTCACHE_SIM_PERSISTENCE", "off", 1);
  GpuAreaFacts facts = gather_gpus(machine);
  ::unsetenv("WEIGHTCACHE_SIM_PERSISTENCE");
  ASSERT_FALSE(facts.gpus.empty());
  facts.gpus.front().exporting = fail(Code::unsupported, "can't export memory");
  Diagnosis diagnosis;
  judge_gpus(facts, diagnosis);
  EXPECT_EQ(severity_of(diagnosis, "persistence_mode"), Severity::warning);
  EXPECT_EQ(severity_of(diagnosis, "vmm_fd"), Severity::problem);
  EXPECT_TRUE(advises(diagnosis, "vmm_fd", "host_fd"));
}

}  // namespace
}  // namespace wc::doctor
