// The bounds of the daemon's own queues, deadlines and turns; those of the catalog and of the wire
// stand in their folders. A test may lower the ones in Limits.
#pragma once

#include <chrono>
#include <cstddef>

namespace wc::daemon {

struct Limits {
  std::size_t connections = 16'384;          // at most half of the limit of open files
  std::chrono::milliseconds hello{5'000};    // from accept to a hello
  std::chrono::milliseconds unread{10'000};  // a packet may wait for its reader
  std::chrono::milliseconds parting{1'000};  // for a last Failure to be read
  std::chrono::milliseconds take{10'000};    // for a descriptor to be looked at
};

inline constexpr int kListenBacklog = 1024;
inline constexpr std::size_t kAcceptsPerTurn = 16;
inline constexpr std::size_t kPacketsPerTurn = 8;  // of one session
inline constexpr std::size_t kMaxQueuedPackets = 256;
inline constexpr std::size_t kMaxQueuedBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMaxRefusedDescriptors = 16;  // packets of one session
inline constexpr std::size_t kMaxTakesOfUser = 4;          // packets with descriptors at a time
inline constexpr std::size_t kMaxTakes = 16;               // of all users: half of the helper
inline constexpr std::size_t kRowsPerPage = 128;
/// Of the half of the open files that is not the connections': the daemon's own few.
inline constexpr std::size_t kOwnDescriptors = 64;
inline constexpr std::size_t kMaxPeerTextBytes = 1'024;  // label, command, container: what is kept

}  // namespace wc::daemon
