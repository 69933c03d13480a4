#include "doctor/gpus.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <utility>

#include <unistd.h>

#include "base/units.hpp"
#include "doctor/transports.hpp"
#include "memory/cuda/vmm.hpp"

namespace wc::doctor {
namespace {

using memory::cuda::Gpu;
using memory::cuda::NvmlGpu;

bool is_gpu_node(const std::string& name) {
  constexpr std::string_view kPrefix = "nvidia";
  return name.size() > kPrefix.size() && name.starts_with(kPrefix) &&
         std::all_of(name.begin() + kPrefix.size(), name.end(),
                     [](unsigned char letter) { return std::isdigit(letter) != 0; });
}

DriverTraces traces_in(const std::string& root) {
  DriverTraces traces;
  traces.kernel_gpus = names_in(root + "/proc/driver/nvidia/gpus").size();
  for (const std::string& name : names_in(root + "/dev")) {
    if (!is_gpu_node(name)) continue;
    const std::string path = "/dev/" + name;
    traces.nodes.push_back(path);
    if (::access((root + path).c_str(), R_OK | W_OK) != 0) traces.refused.push_back(path);
  }
  traces.control = ::access((root + "/dev/nvidiactl").c_str(), F_OK) == 0;
  traces.uvm = ::access((root + "/dev/nvidia-uvm").c_str(), F_OK) == 0;
  return traces;
}

bool any_trace(const DriverTraces& traces) {
  return traces.kernel_gpus > 0 || traces.control || !traces.nodes.empty();
}

const NvmlGpu* known_to_nvml(const GpuAreaFacts& facts, const std::string& uuid) {
  if (!facts.nvml) return nullptr;
  const auto found = std::ranges::find(facts.nvml->gpus, uuid, &NvmlGpu::uuid);
  return found == facts.nvml->gpus.end() ? nullptr : &*found;
}

std::string cuda_version(int version) {
  return format("{}.{}", version / 1000, version % 1000 / 10);
}

// Why a driver that is wanted can't be used, and what to do, by what the file system shows.
std::string driver_advice(const GpuAreaFacts& facts) {
  constexpr const char* kContainer =
      "start the container with its GPUs (--gpus all, or NVIDIA's runtime with "
      "NVIDIA_DRIVER_CAPABILITIES=compute,utility)";
  const DriverTraces& traces = facts.traces;
  const Error& error = facts.driver.error();
  if (error.origin == "CUDA_ERROR_NOT_FOUND") return "install a driver of release 470 or later";
  if (!traces.control || traces.nodes.empty()) {
    return format("the device files /dev/nvidiactl and /dev/nvidia* are missing here: {}",
                  kContainer);
  }
  if (error.origin.empty()) {
    return format(
        "libcuda.so.1 of the kernel module's version is missing here: install it, {}, or "
        "name it in $WEIGHTCACHE_LIBCUDA",
        kContainer);
  }
  if (!traces.refused.empty()) {
    return format(
        "{} can't be opened by this user: give it the group of the device files, or mode "
        "0666",
        traces.refused.front());
  }
  if (facts.visible_devices) {
    return format("CUDA_VISIBLE_DEVICES is \"{}\": unset it, or name a GPU that exists",
                  *facts.visible_devices);
  }
  if (error.origin == "CUDA_ERROR_SYSTEM_NOT_READY") {
    return "start nvidia-fabricmanager: GPUs behind an NVSwitch can't be used before it runs";
  }
  if (!traces.uvm) return "load the module that makes /dev/nvidia-uvm: nvidia-modprobe -u -c 0";
  return "run nvidia-smi: kernel module and library must be of one version; a reboot, or reloading "
         "the module, makes them so";
}

void judge_driver(const GpuAreaFacts& facts, Diagnosis& diagnosis) {
  if (facts.driver) {
    const std::string release =
        facts.nvml ? format(", driver {}", facts.nvml->driver_version) : std::string();
    diagnosis.ok("driver", "cuda", format("CUDA {}{}", cuda_version(*facts.driver), release));
    return;
  }
  // A library without a GPU is nobody's fault; a visible-devices list that hides all may be.
  const bool hidden =
      facts.driver.error().origin == "CUDA_ERROR_NO_DEVICE" && facts.visible_devices.has_value();
  if (!any_trace(facts.traces) && !hidden) {
    diagnosis.ok(
        "driver", "cuda",
        format("no NVIDIA GPU here ({}): device cpu serves", facts.driver.error().message));
    return;
  }
  Finding finding{.area = "driver", .check = "cuda", .severity = Severity::problem};
  finding.text = facts.driver.error().message;
  if (facts.traces.kernel_gpus > 0) {
    finding.text +=
        format("; the kernel's module drives {} of them", format_count(facts.traces.kernel_gpus));
  }
  finding.advice = hidden ? format(
                                "CUDA_VISIBLE_DEVICES is \"{}\": unset it, or name a GPU that "
                                "exists",
                                *facts.visible_devices)
                          : driver_advice(facts);
  diagnosis.findings.push_back(std::move(finding));
}

void judge_nvml(const GpuAreaFacts& facts, Diagnosis& diagnosis) {
  if (facts.nvml || !facts.driver) return;
  diagnosis.findings.push_back(
      {.area = "driver",
       .check = "nvml",
       .severity = Severity::warning,
       .text = format("{}: persistence mode, MIG and what others use can't be told",
                      facts.nvml.error().message),
       .advice = "install libnvidia-ml.so.1, or add \"utility\" to NVIDIA_DRIVER_CAPABILITIES"});
}

void judge_visibility(const GpuAreaFacts& facts, Diagnosis& diagnosis) {
  if (!facts.driver || !facts.visible_devices) return;
  const std::size_t all = facts.nvml ? facts.nvml->gpus.size() : facts.gpus.size();
  diagnosis.ok(
      "gpu", "visible_devices",
      format("CUDA_VISIBLE_DEVICES is \"{}\": this process sees {} of {}, and cuda:N counts "
             "in its order; a UUID is the same everywhere",
             *facts.visible_devices, facts.gpus.size(), std::max(all, facts.gpus.size())));
}

void judge_nodes(const GpuAreaFacts& facts, Diagnosis& diagnosis) {
  if (!facts.driver || facts.traces.refused.empty()) return;
  diagnosis.findings.push_back(
      {.area = "gpu",
       .check = "device_files",
       .severity = Severity::warning,
       .text = format("this user may not open {}", facts.traces.refused.front()),
       .advice = "give the user the group of the device files, or mode 0666: the daemon holds them "
                 "open while an entry lives on the GPU"});
}

void judge_persistence(const GpuFacts& gpu, Diagnosis& diagnosis) {
  if (!gpu.persistence_mode) return;
  Finding finding{.area = "gpu", .check = "persistence_mode", .device = gpu.uuid};
  finding.text = "persistence mode is on";
  if (!*gpu.persistence_mode) {
    // Of the open kernel module: objects die with a device instance, which is stopped when nobody
    // has the GPU open. The daemon has, as long as it lives and may open the device file.
    finding.severity = Severity::warning;
    finding.text =
        "persistence mode is off: the kernel's module stops a GPU that nobody has open, "
        "and what was kept on it goes; the first process to use it waits for its start";
    finding.advice = format("nvidia-smi -i {} -pm 1, or run nvidia-persistenced", gpu.uuid);
  }
  diagnosis.findings.push_back(std::move(finding));
}

void judge_mig(const NvmlGpu& gpu, Diagnosis& diagnosis) {
  if (!gpu.mig_mode) return;
  Finding finding{.area = "gpu", .check = "mig", .device = gpu.uuid};
  finding.text = *gpu.mig_mode ? "MIG is on: its instances, each with a UUID of its own, are the "
                                 "devices"
                               : "MIG is off";
  if (gpu.mig_pending && *gpu.mig_pending != *gpu.mig_mode) {
    finding.severity = Severity::warning;
    finding.text += format("; {} after the next reset", *gpu.mig_pending ? "on" : "off");
    finding.advice = "evict what is resident on it before the GPU is reset";
  }
  diagnosis.findings.push_back(std::move(finding));
}

GpuFacts facts_of(const Gpu& gpu, const NvmlGpu* nvml) {
  GpuFacts facts{
      .uuid = gpu.uuid, .name = gpu.name, .ordinal = gpu.ordinal, .total_bytes = gpu.total_bytes};
  if (nvml == nullptr) return facts;
  if (nvml->total_bytes > 0) facts.total_bytes = nvml->total_bytes;
  facts.used_bytes = nvml->used_bytes;
  facts.used_known = nvml->total_bytes > 0;
  facts.persistence_mode = nvml->persistence_mode;
  facts.mig_mode = nvml->mig_mode;
  return facts;
}

void add_gpu(GpuFacts gpu, Diagnosis& diagnosis) {
  const std::string number =
      gpu.ordinal < 0 ? "hidden from this process" : format("cuda:{}", gpu.ordinal);
  const std::string used =
      gpu.used_known ? format(", {} of them used", format_bytes(gpu.used_bytes)) : std::string();
  diagnosis.ok("gpu", "device",
               format("{}: {}, {}{}", number, gpu.name, format_bytes(gpu.total_bytes), used),
               gpu.uuid);
  judge_persistence(gpu, diagnosis);
  diagnosis.gpus.push_back(std::move(gpu));
}

}  // namespace

GpuAreaFacts gather_gpus(const Machine& machine) {
  GpuAreaFacts facts;
  facts.traces = traces_in(machine.root);
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) facts.visible_devices = visible;
  facts.nvml = memory::cuda::ask_nvml(machine.libnvml);
  const auto driver = memory::cuda::open_driver(machine.libcuda);
  if (!driver) {
    facts.driver = Failure(driver.error());
    return facts;
  }
  facts.driver = driver->version;
  auto gpus = memory::cuda::list_gpus(*driver);
  if (!gpus) {
    facts.driver = Failure(std::move(gpus).error());
    return facts;
  }
  for (Gpu& gpu : *gpus) {
    auto exporting = memory::cuda::try_exporting(*driver, gpu);
    facts.gpus.push_back({.gpu = std::move(gpu), .exporting = std::move(exporting)});
  }
  return facts;
}

void judge_gpus(const GpuAreaFacts& facts, Diagnosis& diagnosis) {
  judge_driver(facts, diagnosis);
  judge_nvml(facts, diagnosis);
  judge_visibility(facts, diagnosis);
  judge_nodes(facts, diagnosis);
  for (const GpuTrial& trial : facts.gpus) {
    const NvmlGpu* const nvml = known_to_nvml(facts, trial.gpu.uuid);
    add_gpu(facts_of(trial.gpu, nvml), diagnosis);
    if (nvml != nullptr) judge_mig(*nvml, diagnosis);
    judge_vmm_fd(trial, diagnosis);
  }
  if (!facts.nvml) return;
  for (const NvmlGpu& gpu : facts.nvml->gpus) {
    const auto is_it = [&gpu](const GpuTrial& trial) { return trial.gpu.uuid == gpu.uuid; };
    if (std::ranges::any_of(facts.gpus, is_it)) continue;
    Gpu hidden;
    hidden.ordinal = -1;
    hidden.uuid = gpu.uuid;
    hidden.name = gpu.name;
    add_gpu(facts_of(hidden, &gpu), diagnosis);
    judge_mig(gpu, diagnosis);
  }
}

}  // namespace wc::doctor
