// One packet with its descriptors, in and out of a SOCK_SEQPACKET socket. This is where security is
// won: every received descriptor is owned (close-on-exec) before anything is decided; surplus ones
// are closed; a truncated control message is an error. Never blocks on a non-blocking socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/fd.hpp"
#include "base/result.hpp"
#include "wire/codec.hpp"

namespace wc::wire {

inline constexpr std::size_t kMaxDescriptors = 250;

struct Packet {
  std::span<std::byte> bytes;  // in the caller's buffer
  std::vector<Fd> descriptors;
};

enum class Receipt : std::uint8_t { packet, would_block, end };

/// Receives one packet into `buffer` (kMaxPacketBytes + 1 bytes, so that a longer one is seen).
/// No control buffer is given where no descriptor is due (`max_descriptors` 0): the kernel then
/// closes what comes, and the packet is refused.
/// Errors: corrupt (too long, truncated control data, too many or undue descriptors), exhausted
/// (EMFILE: descriptors were lost), disconnected (ECONNRESET), io.
[[nodiscard]] Result<Receipt> receive_packet(FdView socket, std::span<std::byte> buffer,
                                             std::size_t max_descriptors, Packet& packet);

enum class Sent : std::uint8_t { sent, would_block, descriptors_in_flight };

/// Sends one packet. `descriptors_in_flight` (ETOOMANYREFS): too many descriptors of this user wait
/// unread in sockets: try again a little later. Errors: disconnected (EPIPE, ECONNRESET), io.
[[nodiscard]] Result<Sent> send_packet(FdView socket, std::span<const std::byte> bytes,
                                       std::span<const FdView> descriptors = {});

/// Whether the peer has read everything that was sent to it (SIOCOUTQ).
[[nodiscard]] bool all_read(FdView socket);

struct Peer {
  std::uint32_t pid = 0;  // 0: in another PID namespace
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
};
/// SO_PEERCRED. Errors: io.
[[nodiscard]] Result<Peer> peer_of(FdView socket);

}  // namespace wc::wire
