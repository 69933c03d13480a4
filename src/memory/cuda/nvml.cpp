#include "memory/cuda/nvml.hpp"

#include <array>
#include <cstdlib>
#include <memory>

#include <dlfcn.h>

namespace wc::memory::cuda {
namespace {

// Of nvml.h (public documentation of NVML, stable since release 270): results are ints, 0 is
// success.
using NvmlDevice = struct NvmlDeviceHandle*;
struct NvmlMemory {
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
  int (*nvmlDeviceGetHandleByIndex_v2)(unsigned, NvmlDevice*) = nullptr;
  int (*nvmlDeviceGetUUID)(NvmlDevice, char*, unsigned) = nullptr;
  int (*nvmlDeviceGetName)(NvmlDevice, char*, unsigned) = nullptr;
  int (*nvmlDeviceGetPersistenceMode)(NvmlDevice, int*) = nullptr;
  int (*nvmlDeviceGetMemoryInfo)(NvmlDevice, NvmlMemory*) = nullptr;
  int (*nvmlDeviceGetMigMode)(NvmlDevice, unsigned*, unsigned*) = nullptr;  // since 450
};

using NvmlText = std::array<char, 128>;

template <typename Function>
bool find_in_nvml(void* library, const char* name, Function*& slot) {
  slot = reinterpret_cast<Function*>(::dlsym(library, name));
  return slot != nullptr;
}

std::string nvml_path(const std::string& wanted) {
  if (!wanted.empty()) return wanted;
  const char* given = std::getenv("WEIGHTCACHE_LIBNVML");
  return given != nullptr && *given != '\0' ? given : "libnvidia-ml.so.1";
}

// Like the driver's, the library stays open: it starts threads of its own.
Result<Nvml> open_nvml(const std::string& path) {
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = ::dlerror();
    return fail(Code::unsupported, "no NVML: {}", reason != nullptr ? reason : path.c_str());
  }
  Nvml nvml;
  bool whole = true;
#define WC_NVML(name) whole = find_in_nvml(library, #name, nvml.name) && whole
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
  (void)find_in_nvml(library, "nvmlDeviceGetMigMode", nvml.nvmlDeviceGetMigMode);
  if (!whole) return fail(Code::unsupported, "\"{}\" lacks functions of NVML", path);
  return nvml;
}

Result<> check_nvml(const Nvml& nvml, std::string_view call, int result) {
  if (result == 0) return {};
  return fail(Code::unsupported, "{}: {}", call, nvml.nvmlErrorString(result));
}

// Empty for a GPU that this process may not ask about; what else can't be told stays unknown.
std::optional<NvmlGpu> nvml_gpu(const Nvml& nvml, unsigned index) {
  NvmlDevice device = nullptr;
  NvmlText text{};
  NvmlGpu gpu;
  if (nvml.nvmlDeviceGetHandleByIndex_v2(index, &device) != 0) return std::nullopt;
  if (nvml.nvmlDeviceGetUUID(device, text.data(), text.size()) != 0) return std::nullopt;
  gpu.uuid = text.data();
  if (nvml.nvmlDeviceGetName(device, text.data(), text.size()) == 0) gpu.name = text.data();
  int persistence = 0;
  if (nvml.nvmlDeviceGetPersistenceMode(device, &persistence) == 0) {
    gpu.persistence_mode = persistence != 0;
  }
  NvmlMemory memory{};
  if (nvml.nvmlDeviceGetMemoryInfo(device, &memory) == 0) {
    gpu.total_bytes = memory.total;
    gpu.used_bytes = memory.used;
  }
  unsigned mig = 0;
  unsigned pending = 0;
  if (nvml.nvmlDeviceGetMigMode != nullptr &&
      nvml.nvmlDeviceGetMigMode(device, &mig, &pending) == 0) {
    gpu.mig_mode = mig != 0;
    gpu.mig_pending = pending != 0;
  }
  return gpu;
}

}  // namespace

Result<NvmlReport> ask_nvml(const std::string& path) {
  const Nvml nvml = TRY(open_nvml(nvml_path(path)));
  TRY(check_nvml(nvml, "nvmlInit", nvml.nvmlInit_v2()));
  const auto shut_down = [&nvml](const NvmlReport*) { (void)nvml.nvmlShutdown(); };
  NvmlReport report;
  const std::unique_ptr<NvmlReport, decltype(shut_down)> started(&report, shut_down);
  NvmlText text{};
  TRY(check_nvml(nvml, "nvmlSystemGetDriverVersion",
                 nvml.nvmlSystemGetDriverVersion(text.data(), text.size())));
  report.driver_version = text.data();
  unsigned count = 0;
  TRY(check_nvml(nvml, "nvmlDeviceGetCount", nvml.nvmlDeviceGetCount_v2(&count)));
  for (unsigned index = 0; index < count; ++index) {
    auto gpu = nvml_gpu(nvml, index);
    if (gpu) report.gpus.push_back(*std::move(gpu));
  }
  return report;
}

}  // namespace wc::memory::cuda
