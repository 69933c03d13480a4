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
#include "base/mapping.hpp"
#include "memory/cuda/driver.hpp"

namespace wc::memory::cuda {

/// A handle and its clean-up: Release(driver, value) is called once, unless moved from.
template <typename Value, auto Release>
class [[nodiscard]] Owned {
 public:
  Owned() = default;
  Owned(const Driver& driver, Value value) : driver_(&driver), value_(value) {}
  Owned(Owned&& other) noexcept
      : driver_(std::exchange(other.driver_, nullptr)), value_(other.value_) {}
  Owned& operator=(Owned&& other) noexcept {
    if (this != &other) {
      reset();
      driver_ = std::exchange(other.driver_, nullptr);
      value_ = other.value_;
    }
    return *this;
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { reset(); }

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

struct RetainedContext {
  CuDevice device = 0;
  CuContext context = nullptr;
};

namespace release {
inline void context(const Driver& driver, const RetainedContext& value) {
  (void)driver.cuDevicePrimaryCtxRelease(value.device);
}
inline void memory(const Driver& driver, const CuMemHandle& value) {
  (void)driver.cuMemRelease(value);
}
inline void range(const Driver& driver, const Range& value) {
  (void)driver.cuMemAddressFree(value.address, value.bytes);
}
inline void mapping(const Driver& driver, const Range& value) {
  (void)driver.cuMemUnmap(value.address, value.bytes);
}
inline void stream(const Driver& driver, const CuStream& value) {
  (void)driver.cuStreamDestroy(value);
}
inline void event(const Driver& driver, const CuEvent& value) {
  (void)driver.cuEventDestroy(value);
}
inline void registration(const Driver& driver, void* const& value) {
  (void)driver.cuMemHostUnregister(value);
}
}  // namespace release

using PrimaryContext = Owned<RetainedContext, release::context>;
using PhysicalMemory = Owned<CuMemHandle, release::memory>;
using AddressRange = Owned<Range, release::range>;
using MappedRange = Owned<Range, release::mapping>;
using Stream = Owned<CuStream, release::stream>;
using Event = Owned<CuEvent, release::event>;
using Registration = Owned<void*, release::registration>;

/// Host memory that the GPU copies from and to by itself. Registering memory of our own costs a
/// ninth of what cuMemHostAlloc does (37 against 326 ms per GiB, H200, driver 580).
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  PinnedBuffer(Mapping memory, Registration registration)
      : memory_(std::move(memory)), registration_(std::move(registration)) {}
  PinnedBuffer(PinnedBuffer&&) noexcept = default;
  // Assigned in the other order: memory that is unmapped while it is registered may be mapped, and
  // registered, by another thread meanwhile.
  PinnedBuffer& operator=(PinnedBuffer&& other) noexcept {
    registration_ = std::move(other.registration_);
    memory_ = std::move(other.memory_);
    return *this;
  }
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;
  ~PinnedBuffer() = default;
  [[nodiscard]] std::span<std::byte> get() const { return memory_.bytes(); }

 private:
  Mapping memory_;  // outlives its registration
  Registration registration_;
};

[[nodiscard]] Result<PrimaryContext> retain_context(const Driver& driver, CuDevice device);
[[nodiscard]] Result<PhysicalMemory> create_memory(const Driver& driver, std::size_t bytes,
                                                   const CuMemAllocationProp& prop);
[[nodiscard]] Result<PhysicalMemory> import_memory(const Driver& driver, FdView fd);
[[nodiscard]] Result<Fd> export_memory(const Driver& driver, const PhysicalMemory& memory);
/// Below this the driver serves reservations from a pool of its own and follows no hint (seen with
/// driver 580.159 on an H200: 4 MiB never, 32 MiB always).
inline constexpr std::size_t kSmallestHintedRange = std::size_t{32} << 20;

/// Exactly `wanted` where that is not 0, else `busy`: a hint that the driver doesn't follow is
/// given back. The range is `bytes` long or longer.
[[nodiscard]] Result<AddressRange> reserve_range(const Driver& driver, std::size_t bytes,
                                                 CuDevicePtr wanted);
/// All of a memory of this size, at the range's start: the driver maps neither a part nor more.
[[nodiscard]] Result<MappedRange> map_memory(const Driver& driver, const AddressRange& range,
                                             const PhysicalMemory& memory, std::size_t bytes);
/// Of the whole range: a part can't be changed on its own.
[[nodiscard]] Result<> set_access(const Driver& driver, const Range& range, CuDevice device,
                                  int flags);
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
