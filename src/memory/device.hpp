// The seam between the product and the hardware. Two implementations in production (host memory,
// CUDA), chosen once where things are wired; tests wrap them and make them fail. One contract suite
// (tests/contract) runs over all.
//
// Thread rule: a Device may be used from several threads. A Segment, a View or a Writer belongs to
// one thread at a time. All of them must go before their Device does.
#pragma once

#include <memory>

#include "memory/types.hpp"

namespace wc::memory {

/// A stretch of bytes that goes from a staged block of a file to its place in a segment.
struct Run {
  std::uint64_t block_offset = 0;  // in the block
  std::uint64_t segment_offset = 0;
  std::uint64_t bytes = 0;
  std::uint32_t segment = 0;
};

/// Physical memory of a device; gone when the last holder (this object, its mappings, its exported
/// descriptors, wherever they are) is gone.
class Segment {
 public:
  virtual ~Segment() = default;
  [[nodiscard]] virtual std::uint64_t bytes() const = 0;
  /// A handle for another process. Only the creator can make the first; errors: device, exhausted.
  [[nodiscard]] virtual Result<Handle> export_handle() = 0;
};

/// A mapping of a segment into this process.
class View {
 public:
  virtual ~View() = default;
  /// Host address, or device address of a GPU; 0 only where the segment is empty.
  [[nodiscard]] virtual std::uint64_t address() const = 0;
  [[nodiscard]] virtual std::uint64_t bytes() const = 0;
  [[nodiscard]] virtual Access access() const = 0;
  /// Ends the right to write through this view, after everything written has arrived. From `write`
  /// to `shared_read` only. Errors: device, io.
  [[nodiscard]] virtual Result<> make_read_only() = 0;
};

/// One thread's way into the views it is given, for filling, and out of them, for comparing.
class Writer {
 public:
  virtual ~Writer() = default;
  /// A block of page-aligned memory to read a file's block into, `bytes` at most the size that the
  /// writer was made for; valid until the next call of stage(). Waits until its last use is over.
  /// Empty where the memory is this process's own, and the file can be read into place (place()).
  [[nodiscard]] virtual Result<std::span<std::byte>> stage(std::uint64_t bytes) = 0;
  /// The host address of a place, for reading straight into it; empty where stage() must be used.
  [[nodiscard]] virtual std::span<std::byte> place(std::uint32_t segment, std::uint64_t offset,
                                                   std::uint64_t bytes) = 0;
  /// Takes the runs of a block to their places. `block` is what stage() gave, or any memory; it
  /// may be used again after the next stage() or finish(). Errors: device.
  [[nodiscard]] virtual Result<> copy_in(std::span<const std::byte> block,
                                         std::span<const Run> runs) = 0;
  /// Bytes of a segment into host memory, complete when this returns. Errors: device.
  [[nodiscard]] virtual Result<> copy_out(std::uint32_t segment, std::uint64_t offset,
                                          std::span<std::byte> to) = 0;
  /// Everything that was copied in has arrived. Errors: device.
  [[nodiscard]] virtual Result<> finish() = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] virtual const DeviceInfo& info() const = 0;
  /// Bytes that could be had now. Errors: io, device.
  [[nodiscard]] virtual Result<std::uint64_t> free_bytes() = 0;
  /// New physical memory, its size rounded up to the granularity, reserved before this returns.
  /// Errors: exhausted (needed and free bytes in the message), invalid_argument (0 bytes), device.
  [[nodiscard]] virtual Result<std::unique_ptr<Segment>> create(std::uint64_t bytes) = 0;
  /// Maps a segment of this process for writing, wherever there is room. Errors: device, io,
  /// exhausted.
  [[nodiscard]] Result<std::unique_ptr<View>> map(Segment& segment) { return map_at(segment, 0); }
  /// The same at this virtual address; 0: any. Errors: as map(); busy (the address is taken).
  [[nodiscard]] virtual Result<std::unique_ptr<View>> map_at(Segment& segment,
                                                             std::uint64_t address) = 0;
  /// Maps a segment that another process made. Takes the handle over. Errors: invalid_argument (the
  /// handle is of another transport), corrupt (it is not what it says: size, seals), busy (the
  /// address is taken), device, io.
  [[nodiscard]] virtual Result<std::unique_ptr<View>> import(Handle handle,
                                                             const ImportOptions& options) = 0;
  /// A writer over mapped segments, `views[n]` being segment n. The views must outlive it.
  [[nodiscard]] virtual Result<std::unique_ptr<Writer>> writer(std::span<View* const> views,
                                                               std::uint64_t block_bytes) = 0;
};

}  // namespace wc::memory
