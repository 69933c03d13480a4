// Owners of one driver object each: made only by functions that return Result, moved, cleaned up
// once. Physical memory, the range of addresses and the mapping of one on the other are three
// types; who holds all three declares them in that order, so that the mapping goes first.
// A driver that is already shut down (CUDA_ERROR_DEINITIALIZED, at process exit) is silence: the
// results of clean-up calls are not looked at.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "base/fd.hpp"
#include "memory/cuda/driver.hpp"

namespace wc::memory::cuda {

/// The clean-up of a handle: Release(driver, value) is called once, unless moved from.
template <typename Value, auto Release>
class [[nodiscard]] Handle {
 public:
  Handle() = default;
  Handle(const Driver& driver, Value value) : driver_(&driver), value_(value) {}
  Handle(Handle&& other) noexcept
      : driver_(std::exchange(other.driver_, nullptr)), value_(other.value_) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) {
      reset();
      driver_ = std::exchange(other.driver_, nullptr);
      value_ = other.value_;
    }
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { reset(); }

  [[nodiscard]] const Value& get() const { return value_; }
  explicit operator bool() const { return driver_ != nullptr; }
  void reset() {
    if (driver_ != nullptr) Release(*std::exchange(driver_, nullptr), value_);
  }

 private:
  const Driver* driver_ = nullptr;
  Value value_{};
};

struct Range {
  CuDevicePtr address = 0;
  std::size_t bytes = 0;
};

using PrimaryContext = Handle<std::pair<CuDevice, CuContext>, [](const Driver& d, const auto& v) {
  (void)d.cuDevicePrimaryCtxRelease(v.first);
}>;
using PhysicalMemory =
    Handle<CuMemHandle, [](const Driver& d, CuMemHandle v) { (void)d.cuMemRelease(v); }>;
using AddressRange = Handle<Range, [](const Driver& d, const Range& v) {
  (void)d.cuMemAddressFree(v.address, v.bytes);
}>;
using MappedRange =
    Handle<Range, [](const Driver& d, const Range& v) { (void)d.cuMemUnmap(v.address, v.bytes); }>;
using Allocation =
    Handle<CuDevicePtr, [](const Driver& d, CuDevicePtr v) { (void)d.cuMemFree(v); }>;
using IpcMapping =
    Handle<CuDevicePtr, [](const Driver& d, CuDevicePtr v) { (void)d.cuIpcCloseMemHandle(v); }>;
using Stream = Handle<CuStream, [](const Driver& d, CuStream v) { (void)d.cuStreamDestroy(v); }>;
using Event = Handle<CuEvent, [](const Driver& d, CuEvent v) { (void)d.cuEventDestroy(v); }>;
using PinnedBuffer = Handle<std::span<std::byte>, [](const Driver& d, std::span<std::byte> v) {
  (void)d.cuMemFreeHost(v.data());
}>;

[[nodiscard]] Result<PrimaryContext> retain_context(const Driver& driver, CuDevice device);
[[nodiscard]] Result<PhysicalMemory> create_memory(const Driver& driver, std::size_t bytes,
                                                   const CuMemAllocationProp& prop);
[[nodiscard]] Result<PhysicalMemory> import_memory(const Driver& driver, FdView fd);
[[nodiscard]] Result<Fd> export_memory(const Driver& driver, const PhysicalMemory& memory);
/// Exactly `wanted` where that is not 0, else `busy`: a hint that the driver doesn't follow is
/// given back.
[[nodiscard]] Result<AddressRange> reserve_range(const Driver& driver, std::size_t bytes,
                                                 CuDevicePtr wanted);
[[nodiscard]] Result<MappedRange> map_memory(const Driver& driver, const AddressRange& range,
                                             const PhysicalMemory& memory);
/// Of the whole range: a part can't be changed on its own.
[[nodiscard]] Result<> set_access(const Driver& driver, const Range& range, CuDevice device,
                                  int flags);
[[nodiscard]] Result<Allocation> allocate(const Driver& driver, std::size_t bytes);
[[nodiscard]] Result<Stream> create_stream(const Driver& driver);
[[nodiscard]] Result<Event> create_event(const Driver& driver);
[[nodiscard]] Result<PinnedBuffer> allocate_pinned(const Driver& driver, std::size_t bytes);

/// Makes a context current on this thread for a scope, and puts back what was.
class [[nodiscard]] CurrentContext {
 public:
  static Result<CurrentContext> push(const Driver& driver, const PrimaryContext& context);
  CurrentContext(CurrentContext&& other) noexcept
      : driver_(std::exchange(other.driver_, nullptr)) {}
  CurrentContext& operator=(CurrentContext&&) = delete;
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;
  ~CurrentContext();

 private:
  explicit CurrentContext(const Driver& driver) : driver_(&driver) {}
  const Driver* driver_;
};

}  // namespace wc::memory::cuda
