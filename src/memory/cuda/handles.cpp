#include "memory/cuda/handles.hpp"

#include <algorithm>

#include <sys/mman.h>

#include "base/units.hpp"

namespace wc::memory::cuda {

Result<PrimaryContext> retain_context(const Driver& driver, CuDevice device) {
  CuContext context = nullptr;
  TRY(WC_CU_CALL(driver, cuDevicePrimaryCtxRetain, &context, device));
  return PrimaryContext(driver, RetainedContext{device, context});
}

Result<PhysicalMemory> create_memory(const Driver& driver, std::size_t bytes,
                                     const CuMemAllocationProp& prop) {
  CuMemHandle handle = 0;
  TRY(WC_CU_CALL(driver, cuMemCreate, &handle, bytes, &prop, 0));
  return PhysicalMemory(driver, handle);
}

Result<PhysicalMemory> import_memory(const Driver& driver, FdView fd) {
  CuMemHandle handle = 0;
  // The descriptor itself travels in the pointer argument.
  auto* shareable = reinterpret_cast<void*>(static_cast<std::intptr_t>(fd.get()));
  TRY(WC_CU_CALL(driver, cuMemImportFromShareableHandle, &handle, shareable, kHandlePosixFd));
  return PhysicalMemory(driver, handle);
}

Result<Fd> export_memory(const Driver& driver, const PhysicalMemory& memory) {
  int number = -1;
  TRY(WC_CU_CALL(driver, cuMemExportToShareableHandle, &number, memory.get(), kHandlePosixFd, 0));
  return Fd(number);
}

Result<AddressRange> reserve_range(const Driver& driver, std::size_t bytes, CuDevicePtr wanted) {
  CuDevicePtr address = 0;
  const std::size_t size = wanted != 0 ? std::max(bytes, kSmallestHintedRange) : bytes;
  TRY(WC_CU_CALL(driver, cuMemAddressReserve, &address, size, 0, wanted, 0));
  AddressRange range(driver, Range{address, size});
  if (wanted != 0 && address != wanted) {
    return fail(Code::busy, "the address {:#x} for {} is taken in this process", wanted,
                format_bytes(bytes));
  }
  return range;
}

Result<MappedRange> map_memory(const Driver& driver, const AddressRange& range,
                               const PhysicalMemory& memory, std::size_t bytes) {
  const CuDevicePtr address = range.get().address;
  TRY(WC_CU_CALL(driver, cuMemMap, address, bytes, 0, memory.get(), 0));
  return MappedRange(driver, Range{address, bytes});
}

Result<> set_access(const Driver& driver, const Range& range, CuDevice device, int flags) {
  CuMemAccessDesc access;
  access.location.id = device;
  access.flags = flags;
  return WC_CU_CALL(driver, cuMemSetAccess, range.address, range.bytes, &access, 1);
}

Result<Stream> create_stream(const Driver& driver) {
  CuStream stream = nullptr;
  TRY(WC_CU_CALL(driver, cuStreamCreate, &stream, kStreamNonBlocking));
  return Stream(driver, stream);
}

Result<Event> create_event(const Driver& driver) {
  CuEvent event = nullptr;
  TRY(WC_CU_CALL(driver, cuEventCreate, &event, kEventDisableTiming));
  return Event(driver, event);
}

Result<PinnedBuffer> allocate_pinned(const Driver& driver, std::size_t bytes) {
  Mapping memory = TRY(Mapping::map(FdView(), {.bytes = bytes,
                                               .protection = PROT_READ | PROT_WRITE,
                                               .flags = MAP_PRIVATE | MAP_ANONYMOUS,
                                               .alignment = kHugePageBytes}));
  // Both are wishes: without huge pages, or before Linux 5.14, registering touches each page.
  (void)::madvise(memory.data(), bytes, MADV_HUGEPAGE);
  (void)::madvise(memory.data(), bytes, MADV_POPULATE_WRITE);
  TRY(WC_CU_CALL(driver, cuMemHostRegister, memory.data(), bytes, kHostRegisterPortable));
  Registration registration(driver, memory.data());
  return PinnedBuffer(std::move(memory), std::move(registration));
}

Result<CurrentContext> CurrentContext::push(const Driver& driver, const PrimaryContext& context) {
  TRY(WC_CU_CALL(driver, cuCtxPushCurrent, context.get().context));
  return CurrentContext(driver);
}

CurrentContext::~CurrentContext() {
  if (driver_ == nullptr) return;
  CuContext popped = nullptr;
  (void)driver_->cuCtxPopCurrent(&popped);
}

}  // namespace wc::memory::cuda
