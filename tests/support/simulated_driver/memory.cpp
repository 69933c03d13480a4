// Physical memory, address ranges and mappings. Each rule here was seen on a real GPU; where one is
// odd, the contract suite has a test for it.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "calls.hpp"
#include "state.hpp"

namespace sim {
namespace {

void* pointer(CuDevicePtr address) { return reinterpret_cast<void*>(address); }

int gpu_of(CuDevice device) {
  const auto& gpus = visible_gpus();
  return device >= 0 && device < static_cast<int>(gpus.size())
             ? gpus.at(static_cast<std::size_t>(device))
             : -1;
}

// Smaller ranges come from a pool, wherever that is, as the real driver's do.
constexpr std::size_t kSmallestHinted = std::size_t{32} << 20;

// A range of addresses that nothing else in this process has, at a 2 MiB boundary.
void* reserve(std::size_t bytes, CuDevicePtr hint) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  if (hint != 0 && bytes >= kSmallestHinted) {
    void* at = ::mmap(pointer(hint), bytes, PROT_NONE, kFlags | MAP_FIXED_NOREPLACE, -1, 0);
    if (at == pointer(hint)) return at;
    if (at != MAP_FAILED) ::munmap(at, bytes);
  }
  void* raw = ::mmap(nullptr, bytes + kGranularity, PROT_NONE, kFlags, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  auto* start = static_cast<char*>(raw);
  const std::size_t head =
      (kGranularity - reinterpret_cast<std::uintptr_t>(start) % kGranularity) % kGranularity;
  if (head > 0) ::munmap(start, head);
  ::munmap(start + head + bytes, kGranularity - head);
  return start + head;
}

}  // namespace

CuResult cuMemGetAllocationGranularity(std::size_t* granularity, const CuMemAllocationProp* prop,
                                       int /*option*/) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const CuResult due = enter(s, "cuMemGetAllocationGranularity");
  if (due != CuResult::success) return due;
  if (gpu_of(prop->location.id) < 0) return CuResult::invalid_device;
  *granularity = kGranularity;
  return CuResult::success;
}

CuResult cuMemCreate(CuMemHandle* handle, std::size_t bytes, const CuMemAllocationProp* prop,
                     unsigned long long flags) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const CuResult due = enter(s, "cuMemCreate"); due != CuResult::success) return due;
  const int gpu = gpu_of(prop->location.id);
  if (gpu < 0 || flags != 0 || prop->type != 1 || prop->location.type != 1) {
    return CuResult::invalid_value;
  }
  if (bytes == 0 || bytes % kGranularity != 0) return CuResult::invalid_value;
  if ((prop->requested_handle_types & kHandleFabric) != 0) return CuResult::not_permitted;
  if (!vmm_supported()) return CuResult::not_supported;
  wc::Fd file = new_memory(gpu, bytes);
  if (!file) return CuResult::out_of_memory;
  *handle = fresh_id(s);
  s.memory.emplace(*handle, Physical{std::move(file), bytes, gpu, true});
  return CuResult::success;
}

CuResult cuMemRelease(CuMemHandle handle) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const CuResult due = enter(s, "cuMemRelease");
  if (s.memory.erase(handle) == 0) refuse("cuMemRelease of memory that is not held");
  return due;
}

CuResult cuMemExportToShareableHandle(void* out, CuMemHandle handle, int handle_type,
                                      unsigned long long /*flags*/) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const CuResult due = enter(s, "cuMemExportToShareableHandle");
  if (due != CuResult::success) return due;
  const auto found = s.memory.find(handle);
  if (found == s.memory.end() || !found->second.created || handle_type != kHandlePosixFd) {
    return CuResult::invalid_value;
  }
  const int fd = ::fcntl(found->second.file.get(), F_DUPFD_CLOEXEC, 0);
  if (fd < 0) return CuResult::operating_system;
  *static_cast<int*>(out) = fd;
  return CuResult::success;
}

CuResult cuMemImportFromShareableHandle(CuMemHandle* handle, void* os_handle, int handle_type) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const CuResult due = enter(s, "cuMemImportFromShareableHandle");
  if (due != CuResult::success) return due;
  const int fd = static_cast<int>(reinterpret_cast<std::intptr_t>(os_handle));
  Physical memory;
  if (handle_type != kHandlePosixFd || !memory_of(fd, memory.gpu, memory.bytes)) {
    return CuResult::invalid_value;
  }
  memory.file = wc::Fd(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!memory.file) return CuResult::operating_system;
  *handle = fresh_id(s);
  s.memory.emplace(*handle, std::move(memory));
  return CuResult::success;
}

CuResult cuMemAddressReserve(CuDevicePtr* address, std::size_t bytes, std::size_t /*alignment*/,
                             CuDevicePtr hint, unsigned long long /*flags*/) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const CuResult due = enter(s, "cuMemAddressReserve"); due != CuResult::success) return due;
  if (bytes == 0 || bytes % kGranularity != 0) return CuResult::invalid_value;
  void* at = reserve(bytes, hint);
  if (at == nullptr) return CuResult::out_of_memory;
  *address = reinterpret_cast<CuDevicePtr>(at);
  s.ranges.emplace(*address, Reserved{bytes});
  return CuResult::success;
}

CuResult cuMemAddressFree(CuDevicePtr address, std::size_t bytes) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const CuResult due = enter(s, "cuMemAddressFree");
  const auto found = s.ranges.find(address);
  if (found == s.ranges.end() || found->second.bytes != bytes) {
    refuse("cuMemAddressFree of a range that was not reserved");
  }
  if (s.mappings.contains(address)) refuse("cuMemAddressFree of a range that is still mapped");
  ::munmap(pointer(address), bytes);
  s.ranges.erase(found);
  return due;
}

CuResult cuMemMap(CuDevicePtr address, std::size_t bytes, std::size_t offset, CuMemHandle handle,
                  unsigned long long /*flags*/) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const CuResult due = enter(s, "cuMemMap"); due != CuResult::success) return due;
  const auto range = s.ranges.find(address);
  const auto memory = s.memory.find(handle);
  if (range == s.ranges.end() || memory == s.memory.end() || s.mappings.contains(address) ||
      bytes > range->second.bytes) {
    return CuResult::invalid_value;
  }
  if (offset != 0 || bytes != memory->second.bytes) return CuResult::not_supported;
  // Mapped, and not accessible until cuMemSetAccess says so.
  void* at = ::mmap(pointer(address), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED,
                    memory->second.file.get(), 0);
  if (at == MAP_FAILED) return CuResult::operating_system;
  s.mappings.emplace(address, Mapped{bytes, memory->second.gpu, 0});
  return CuResult::success;
}

CuResult cuMemUnmap(CuDevicePtr address, std::size_t bytes) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const CuResult due = enter(s, "cuMemUnmap");
  const auto found = s.mappings.find(address);
  if (found == s.mappings.end() || found->second.bytes != bytes) {
    refuse("cuMemUnmap of what is not mapped");
  }
  ::mmap(pointer(address), bytes, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  s.mappings.erase(found);
  return due;
}

CuResult cuMemSetAccess(CuDevicePtr address, std::size_t bytes, const CuMemAccessDesc* access,
                        std::size_t count) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const CuResult due = enter(s, "cuMemSetAccess"); due != CuResult::success) return due;
  const auto found = s.mappings.find(address);
  // Of a whole mapping, by the GPU whose memory it is.
  if (found == s.mappings.end() || found->second.bytes != bytes || count != 1 ||
      gpu_of(access->location.id) != found->second.gpu) {
    return CuResult::invalid_value;
  }
  for (const auto& [id, stream] : s.streams) {
    for (const Copy& copy : stream.pending) {
      const auto to = reinterpret_cast<CuDevicePtr>(copy.to);
      if (to >= address && to < address + bytes) {
        refuse("access to a range is changed while a copy into it still runs");
      }
    }
  }
  const int protection = access->flags == kAccessReadWrite ? PROT_READ | PROT_WRITE : PROT_READ;
  if (::mprotect(pointer(address), bytes, protection) != 0) return CuResult::operating_system;
  found->second.access = access->flags;
  return CuResult::success;
}

CuResult cuMemHostRegister(void* address, std::size_t bytes, unsigned /*flags*/) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const CuResult due = enter(s, "cuMemHostRegister"); due != CuResult::success) return due;
  if (address == nullptr || bytes == 0) return CuResult::invalid_value;
  if (!s.pinned.emplace(address, bytes).second) refuse("memory is registered twice");
  return CuResult::success;
}

CuResult cuMemHostUnregister(void* address) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const CuResult due = enter(s, "cuMemHostUnregister");
  if (s.pinned.erase(address) == 0) refuse("cuMemHostUnregister of what is not registered");
  return due;
}

}  // namespace sim
