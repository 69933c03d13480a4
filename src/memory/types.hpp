// What memory is here, whatever it is made of: a device, a segment of its physical memory, a
// mapping of a segment, and the thing that crosses to another process. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace wc::memory {

/// How a segment crosses to another process. The numbers are those of the wire and the C ABI.
enum class Transport : std::uint8_t { host_fd = 1, vmm_fd = 2, torch_ipc = 3 };

[[nodiscard]] std::string_view name_of(Transport transport);
/// Exact names; "" means the device's default. Errors: unsupported, naming those that exist.
[[nodiscard]] Result<std::optional<Transport>> transport_named(std::string_view name);

/// A legacy CUDA IPC handle with what its importer must know (torch_ipc).
struct IpcHandle {
  std::vector<std::byte> handle = {};  // 64 bytes, 66 with PyTorch's version prefix
  std::uint64_t offset_bytes = 0;      // of the segment inside the exported allocation
  std::vector<std::byte> event = {};   // empty, or an IPC event to wait for
  std::string counter = {};            // PyTorch's reference counter file; empty: none
  std::uint64_t counter_offset = 0;
};

/// What crosses: a descriptor (vmm_fd, host_fd) or bounded bytes (torch_ipc).
using Handle = std::variant<Fd, IpcHandle>;

/// Where a tensor must start inside its segment.
inline constexpr std::uint64_t kTensorAlignment = 512;

/// Fixed virtual addresses are multiples of it, and leave the kernel's half alone. A segment's next
/// one is kAddressStep further at least: GPU drivers follow no hint for a smaller range (seen with
/// driver 580.159 on an H200).
inline constexpr std::uint64_t kAddressAlignment = std::uint64_t{2} << 20;
inline constexpr std::uint64_t kAddressStep = std::uint64_t{32} << 20;
inline constexpr std::uint64_t kHighestAddress = 0x7fff'ffff'ffff;

struct DeviceInfo {
  std::string uuid;  // "cpu", "GPU-6f1c...", "MIG-..."
  int ordinal = -1;  // this process's; -1: none (cpu)
  std::string name;  // "NVIDIA H200"; the processor's name for cpu
  std::uint64_t total_bytes = 0;
  std::uint64_t granularity_bytes = 0;  // segments' sizes are multiples of it
  std::uint64_t segment_flags = 0;    // how its segments are created: Segment.flags of the manifest
  std::vector<Transport> transports;  // that it can do, the default first
};

/// How a reader maps.
enum class Access : std::uint8_t {
  shared_read,   // read-only, shared pages: registration, mlock and long-term pins cost nothing
  private_copy,  // copy-on-write: the reader may write and disturbs nobody (host memory only)
  write,         // for the publisher that fills it
};

struct ImportOptions {
  std::uint64_t bytes = 0;  // of the segment
  Access access = Access::shared_read;
  std::uint64_t address = 0;  // wanted virtual address; 0: any. Not to be had: `busy`
};

}  // namespace wc::memory
