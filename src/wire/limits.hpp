// What bounds a message, beside the packet itself. Checked by encode() before sending and by
// decode() after receiving; docs/PROTOCOL.md lists them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wc::wire {

inline constexpr std::size_t kMaxPacketBytes = 64 * 1024;
inline constexpr std::uint16_t kMinVersion = 1;
inline constexpr std::uint16_t kMaxVersion = 1;
inline constexpr std::size_t kMaxDescriptors = 250;  // of one packet; the kernel's own limit is 253
inline constexpr std::size_t kMaxSegments = 240;     // with the manifest below 250 descriptors
inline constexpr std::size_t kMaxAliases = 64;
inline constexpr std::size_t kMaxTextBytes = 4096;  // of any one string, a form's JSON excepted
inline constexpr std::size_t kMaxFormBytes = 16 * 1024;
inline constexpr std::size_t kMaxTicketBytes = 256;
inline constexpr std::size_t kMaxIpcBytes = 128;      // of an IPC handle, of an IPC event
inline constexpr std::size_t kMaxCounterBytes = 256;  // the name of a reference counter's file

/// A bit of Hello's capabilities: understands Resumed.
inline constexpr std::uint64_t kResumes = 1;

}  // namespace wc::wire
