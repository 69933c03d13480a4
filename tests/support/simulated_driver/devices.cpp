// Start-up, devices and contexts.
#include <algorithm>
#include <cstring>
#include <map>

#include "calls.hpp"
#include "state.hpp"

namespace sim {
namespace {

bool exists(CuDevice device) {
  return device >= 0 && device < static_cast<int>(visible_gpus().size());
}

// The thread's stack of contexts; a context is its device's number plus one.
thread_local std::vector<CuContext> current;

}  // namespace

CuResult cuInit(unsigned /*flags*/) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const CuResult due = enter(s, "cuInit"); due != CuResult::success) return due;
  if (visible_gpus().empty()) return CuResult::no_device;
  s.initialised = true;
  return CuResult::success;
}

CuResult cuDriverGetVersion(int* version) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const CuResult due = enter(s, "cuDriverGetVersion"); due != CuResult::success) return due;
  *version = 13000;
  return CuResult::success;
}

CuResult cuGetErrorName(CuResult error, const char** text) {
  static const std::map<CuResult, const char*> names = {
      {CuResult::success, "CUDA_SUCCESS"},
      {CuResult::invalid_value, "CUDA_ERROR_INVALID_VALUE"},
      {CuResult::out_of_memory, "CUDA_ERROR_OUT_OF_MEMORY"},
      {CuResult::not_initialized, "CUDA_ERROR_NOT_INITIALIZED"},
      {CuResult::deinitialized, "CUDA_ERROR_DEINITIALIZED"},
      {CuResult::device_unavailable, "CUDA_ERROR_DEVICE_UNAVAILABLE"},
      {CuResult::no_device, "CUDA_ERROR_NO_DEVICE"},
      {CuResult::invalid_device, "CUDA_ERROR_INVALID_DEVICE"},
      {CuResult::operating_system, "CUDA_ERROR_OPERATING_SYSTEM"},
      {CuResult::not_found, "CUDA_ERROR_NOT_FOUND"},
      {CuResult::not_ready, "CUDA_ERROR_NOT_READY"},
      {CuResult::illegal_address, "CUDA_ERROR_ILLEGAL_ADDRESS"},
      {CuResult::not_permitted, "CUDA_ERROR_NOT_PERMITTED"},
      {CuResult::not_supported, "CUDA_ERROR_NOT_SUPPORTED"},
      {CuResult::unknown, "CUDA_ERROR_UNKNOWN"}};
  const auto found = names.find(error);
  if (found == names.end()) return CuResult::invalid_value;
  *text = found->second;
  return CuResult::success;
}

CuResult cuDeviceGetCount(int* count) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const CuResult due = enter(s, "cuDeviceGetCount"); due != CuResult::success) return due;
  *count = static_cast<int>(visible_gpus().size());
  return CuResult::success;
}

CuResult cuDeviceGet(CuDevice* device, int ordinal) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const CuResult due = enter(s, "cuDeviceGet"); due != CuResult::success) return due;
  if (!exists(ordinal)) return CuResult::invalid_device;
  *device = ordinal;
  return CuResult::success;
}

CuResult cuDeviceGetName(char* name, int length, CuDevice device) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const CuResult due = enter(s, "cuDeviceGetName"); due != CuResult::success) return due;
  if (!exists(device) || length < 1) return CuResult::invalid_value;
  const std::string text = "Simulated GPU";
  const std::size_t count = std::min(text.size(), static_cast<std::size_t>(length) - 1);
  std::memcpy(name, text.data(), count);
  name[count] = '\0';
  return CuResult::success;
}

CuResult cuDeviceGetUuid(CuUuid* uuid, CuDevice device) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const CuResult due = enter(s, "cuDeviceGetUuid"); due != CuResult::success) return due;
  if (!exists(device)) return CuResult::invalid_device;
  *uuid = gpu_uuid(visible_gpus().at(static_cast<std::size_t>(device)));
  return CuResult::success;
}

CuResult cuDeviceTotalMem(std::size_t* bytes, CuDevice device) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const CuResult due = enter(s, "cuDeviceTotalMem"); due != CuResult::success) return due;
  if (!exists(device)) return CuResult::invalid_device;
  *bytes = gpu_bytes();
  return CuResult::success;
}

CuResult cuDeviceGetAttribute(int* value, int attribute, CuDevice device) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const CuResult due = enter(s, "cuDeviceGetAttribute"); due != CuResult::success) return due;
  if (!exists(device)) return CuResult::invalid_device;
  switch (attribute) {
    case kAttributeVmmSupported:
    case kAttributePosixFdSupported:
      *value = vmm_supported() ? 1 : 0;
      return CuResult::success;
    case kAttributeFabricSupported:  // as on an H200: promised here, refused by cuMemCreate
      *value = 1;
      return CuResult::success;
    case kAttributePciBusId:
      *value = 0x10 + visible_gpus().at(static_cast<std::size_t>(device));
      return CuResult::success;
    case kAttributePciDeviceId:
    case kAttributePciDomainId:
      *value = 0;
      return CuResult::success;
    default:
      refuse(wc::format("knows no device attribute {}", attribute));
  }
}

CuResult cuDevicePrimaryCtxRetain(CuContext* context, CuDevice device) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const CuResult due = enter(s, "cuDevicePrimaryCtxRetain"); due != CuResult::success) {
    return due;
  }
  if (!exists(device)) return CuResult::invalid_device;
  ++s.contexts[device];
  *context = reinterpret_cast<CuContext>(static_cast<std::intptr_t>(device) + 1);
  return CuResult::success;
}

CuResult cuDevicePrimaryCtxRelease(CuDevice device) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const CuResult due = enter(s, "cuDevicePrimaryCtxRelease");
  const auto held = s.contexts.find(device);
  if (held == s.contexts.end()) refuse("a primary context is released that nobody retains");
  if (--held->second == 0) s.contexts.erase(held);
  return due;  // a clean-up that is told to fail has cleaned up all the same
}

CuResult cuCtxPushCurrent(CuContext context) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const CuResult due = enter(s, "cuCtxPushCurrent"); due != CuResult::success) return due;
  const auto device = static_cast<CuDevice>(reinterpret_cast<std::intptr_t>(context)) - 1;
  if (!s.contexts.contains(device)) return CuResult::invalid_value;
  current.push_back(context);
  return CuResult::success;
}

CuResult cuCtxPopCurrent(CuContext* context) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const CuResult due = enter(s, "cuCtxPopCurrent"); due != CuResult::success) {
    if (!current.empty()) current.pop_back();
    return due;
  }
  if (current.empty()) return CuResult::invalid_value;
  *context = current.back();
  current.pop_back();
  return CuResult::success;
}

CuResult cuMemGetInfo(std::size_t* free, std::size_t* total) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const CuResult due = enter(s, "cuMemGetInfo"); due != CuResult::success) return due;
  if (current.empty()) return CuResult::invalid_value;
  const auto device = static_cast<std::size_t>(reinterpret_cast<std::intptr_t>(current.back())) - 1;
  const std::size_t used = used_bytes(visible_gpus().at(device));
  *total = gpu_bytes();
  *free = *total - std::min(used, *total);
  return CuResult::success;
}

}  // namespace sim
