#include "doctor/transports.hpp"

#include <utility>

#include "memory/cuda/vmm.hpp"

namespace wc::doctor {
namespace {

const char* yes_or_no(bool flag) { return flag ? "yes" : "no"; }

}  // namespace

void judge_vmm_fd(const GpuTrial& trial, Diagnosis& diagnosis) {
  Finding finding{.area = "transport", .check = "vmm_fd", .device = trial.gpu.uuid};
  if (trial.exporting) {
    const std::uint64_t flags = *trial.exporting;
    finding.text = format(
        "vmm_fd: memory can be made and exported (GPUDirect RDMA: {}, fabric "
        "handles: {})",
        yes_or_no((flags & memory::cuda::kFlagGpuDirectRdma) != 0),
        yes_or_no((flags & memory::cuda::kFlagFabric) != 0));
  } else if (trial.exporting.error().code == Code::exhausted) {
    finding.severity = Severity::warning;
    finding.text =
        format("vmm_fd could not be tried: {}; the GPU is full", trial.exporting.error().message);
    finding.advice = "free memory on it: weightcache ls, nvidia-smi";
  } else {
    finding.severity = Severity::problem;
    finding.text = format("vmm_fd can't serve: {}", trial.exporting.error().message);
    finding.advice =
        "a Linux driver of CUDA 11.4 or later that can export memory as a descriptor; "
        "until then device cpu, with host_fd, serves";
  }
  diagnosis.findings.push_back(std::move(finding));
}

}  // namespace wc::doctor
