// NVML, as far as the product asks it: the simulated machine's GPUs, whatever CUDA_VISIBLE_DEVICES
// says. WEIGHTCACHE_SIM_PERSISTENCE=off and WEIGHTCACHE_SIM_MIG=on|pending change what it tells;
// WEIGHTCACHE_SIM_NVML_FAIL names a call that is refused.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "state.hpp"

#define WCSIM_EXPORT __attribute__((visibility("default")))

namespace {

constexpr int kSuccess = 0;
constexpr int kInvalidArgument = 2;
constexpr int kNotSupported = 3;
constexpr int kInsufficientSize = 7;

struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

// A device is its number plus one.
int number_of(const void* device) {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(device)) - 1;
}

int give(const std::string& text, char* out, unsigned size) {
  if (text.size() >= size) return kInsufficientSize;
  std::memcpy(out, text.c_str(), text.size() + 1);
  return kSuccess;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

bool fails(const char* call) { return variable("WEIGHTCACHE_SIM_NVML_FAIL") == call; }

}  // namespace

extern "C" {

WCSIM_EXPORT int nvmlInit_v2() { return fails("nvmlInit") ? kNotSupported : kSuccess; }
WCSIM_EXPORT int nvmlShutdown() { return kSuccess; }
WCSIM_EXPORT const char* nvmlErrorString(int result) {
  return result == kSuccess ? "Success" : "Simulated error";
}
WCSIM_EXPORT int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  return give("580.00.00-simulated", text, size);
}
WCSIM_EXPORT int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(sim::gpu_count());
  return kSuccess;
}
WCSIM_EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index >= static_cast<unsigned>(sim::gpu_count())) return kInvalidArgument;
  *device = reinterpret_cast<void*>(static_cast<std::intptr_t>(index) + 1);
  return kSuccess;
}
WCSIM_EXPORT int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
  return give(sim::hex(sim::gpu_uuid(number_of(device))), text, size);
}
WCSIM_EXPORT int nvmlDeviceGetName(void* /*device*/, char* text, unsigned size) {
  return give("Simulated GPU", text, size);
}
WCSIM_EXPORT int nvmlDeviceGetPersistenceMode(void* /*device*/, int* mode) {
  *mode = variable("WEIGHTCACHE_SIM_PERSISTENCE") == "off" ? 0 : 1;
  return kSuccess;
}
WCSIM_EXPORT int nvmlDeviceGetMemoryInfo(void* device, Memory* memory) {
  if (fails("nvmlDeviceGetMemoryInfo")) return kNotSupported;
  memory->total = sim::gpu_bytes();
  memory->used = std::min<unsigned long long>(sim::used_bytes(number_of(device)), memory->total);
  memory->free = memory->total - memory->used;
  return kSuccess;
}
WCSIM_EXPORT int nvmlDeviceGetMigMode(void* /*device*/, unsigned* current, unsigned* pending) {
  const std::string mig = variable("WEIGHTCACHE_SIM_MIG");
  if (mig.empty()) return kNotSupported;
  *current = mig == "on" ? 1 : 0;
  *pending = 1;
  return kSuccess;
}

}  // extern "C"
