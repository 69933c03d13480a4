#include "memory/cuda/nvml.hpp"

#include <array>
#include <memory>

#include <dlfcn.h>

namespace wc::memory::cuda {
namespace {

// Of nvml.h (public documentation of NVML, stable since release 270): results are ints, 0 is
// success.
using Device = struct NvmlDevice*;
struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

struct Nvml {
  int (*nvmlInit_v2)() = nullptr;
  int (*nvmlShutdown)() = nullptr;
  const char* (*nvmlErrorString)(int) = nullptr;
  int (*nvmlSystemGetDriverVersion)(char*, unsigned) = nullptr;
  int (*nvmlDeviceGetCount_v2)(unsigned*) = nullptr;
  int (*nvmlDeviceGetHandleByIndex_v2)(unsigned, Device*) = nullptr;
  int (*nvmlDeviceGetUUID)(Device, char*, unsigned) = nullptr;
  int (*nvmlDeviceGetName)(Device, char*, unsigned) = nullptr;
  int (*nvmlDeviceGetPersistenceMode)(Device, int*) = nullptr;
  int (*nvmlDeviceGetMemoryInfo)(Device, Memory*) = nullptr;
};

template <typename Function>
bool find(void* library, const char* name, Function*& slot) {
  slot = reinterpret_cast<Function*>(::dlsym(library, name));
  return slot != nullptr;
}

Result<Nvml> open_nvml(const std::string& path) {
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = ::dlerror();
    return fail(Code::unsupported, "no NVML: {}", reason != nullptr ? reason : path.c_str());
  }
  Nvml nvml;
  bool whole = true;
#define WC_NVML(name) whole = find(library, #name, nvml.name) && whole
  WC_NVML(nvmlInit_v2);
  WC_NVML(nvmlShutdown);
  WC_NVML(nvmlErrorString);
  WC_NVML(nvmlSystemGetDriverVersion);
  WC_NVML(nvmlDeviceGetCount_v2);
  WC_NVML(nvmlDeviceGetHandleByIndex_v2);
  WC_NVML(nvmlDeviceGetUUID);
  WC_NVML(nvmlDeviceGetName);
  WC_NVML(nvmlDeviceGetPersistenceMode);
  WC_NVML(nvmlDeviceGetMemoryInfo);
#undef WC_NVML
  if (!whole) return fail(Code::unsupported, "\"{}\" lacks functions of NVML", path);
  return nvml;
}

Result<> check(const Nvml& nvml, std::string_view call, int result) {
  if (result == 0) return {};
  return fail(Code::unsupported, "{}: {}", call, nvml.nvmlErrorString(result));
}

Result<NvmlGpu> describe(const Nvml& nvml, unsigned index) {
  Device device = nullptr;
  TRY(check(nvml, "nvmlDeviceGetHandleByIndex",
            nvml.nvmlDeviceGetHandleByIndex_v2(index, &device)));
  std::array<char, 128> text{};
  NvmlGpu gpu;
  TRY(check(nvml, "nvmlDeviceGetUUID", nvml.nvmlDeviceGetUUID(device, text.data(), text.size())));
  gpu.uuid = text.data();
  TRY(check(nvml, "nvmlDeviceGetName", nvml.nvmlDeviceGetName(device, text.data(), text.size())));
  gpu.name = text.data();
  int persistence = 0;
  TRY(check(nvml, "nvmlDeviceGetPersistenceMode",
            nvml.nvmlDeviceGetPersistenceMode(device, &persistence)));
  gpu.persistence = persistence != 0;
  Memory memory{};
  TRY(check(nvml, "nvmlDeviceGetMemoryInfo", nvml.nvmlDeviceGetMemoryInfo(device, &memory)));
  gpu.total_bytes = memory.total;
  gpu.used_bytes = memory.used;
  return gpu;
}

}  // namespace

Result<NvmlReport> ask_nvml(const std::string& path) {
  const Nvml nvml = TRY(open_nvml(path.empty() ? "libnvidia-ml.so.1" : path));
  TRY(check(nvml, "nvmlInit", nvml.nvmlInit_v2()));
  const auto shut_down = [&nvml](const NvmlReport*) { (void)nvml.nvmlShutdown(); };
  NvmlReport report;
  const std::unique_ptr<NvmlReport, decltype(shut_down)> started(&report, shut_down);
  std::array<char, 128> text{};
  TRY(check(nvml, "nvmlSystemGetDriverVersion",
            nvml.nvmlSystemGetDriverVersion(text.data(), text.size())));
  report.driver_version = text.data();
  unsigned count = 0;
  TRY(check(nvml, "nvmlDeviceGetCount", nvml.nvmlDeviceGetCount_v2(&count)));
  for (unsigned index = 0; index < count; ++index) {
    NvmlGpu gpu = TRY(describe(nvml, index));
    report.gpus.push_back(std::move(gpu));
  }
  return report;
}

}  // namespace wc::memory::cuda
