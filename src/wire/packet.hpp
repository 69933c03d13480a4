// One packet with its descriptors, in and out of a SOCK_SEQPACKET socket. This is where security is
// won: every received descriptor is owned (close-on-exec) before anything is decided; surplus ones
// are closed; a truncated control message is an error. Never blocks, whatever the socket's mode.
// Thread rule: one thread at a time receives, one at a time sends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/fd.hpp"
#include "base/result.hpp"
#include "wire/limits.hpp"

namespace wc::wire {

struct Packet {
  std::span<std::byte> bytes;  // in the caller's buffer
  std::vector<Fd> descriptors;
};

/// Room for the longest packet and one byte more, so that a longer one is seen; aligned for
/// decode().
struct alignas(64) PacketBuffer {
  std::byte bytes[kMaxPacketBytes + 64];
};

enum class Receipt : std::uint8_t { packet, would_block, end };

/// Receives one packet into `buffer` (a PacketBuffer's bytes). No control buffer is given where no
/// descriptor is due (`max_descriptors` 0): the kernel then closes what comes, and the packet is
/// refused. An empty packet counts as the end. After an error nothing is kept of the packet.
/// Errors: corrupt (too long, too many or undue descriptors), exhausted (the limit of open files:
/// descriptors were lost), disconnected (ECONNRESET, and nothing was left to read),
/// invalid_argument (more than 250 descriptors, a buffer too small), io.
[[nodiscard]] Result<Receipt> receive_packet(FdView socket, std::span<std::byte> buffer,
                                             std::size_t max_descriptors, Packet& packet);

struct Peeked {
  Receipt receipt = Receipt::would_block;
  std::span<std::byte> bytes;  // in the caller's buffer
  bool descriptors = false;    // come with it
};
/// Looks at the next packet and leaves it, descriptors too, where it is. Errors: as
/// receive_packet.
[[nodiscard]] Result<Peeked> peek_packet(FdView socket, std::span<std::byte> buffer);

enum class Sent : std::uint8_t { sent, would_block, descriptors_in_flight };

/// Sends one packet, whole or not at all; never raises SIGPIPE. `descriptors_in_flight`
/// (ETOOMANYREFS): too many descriptors of this user wait unread in sockets: try again a little
/// later. Errors: disconnected (EPIPE, ECONNRESET), invalid_argument (empty, too long, more than
/// 250 descriptors, one that is not open), exhausted (the kernel has no memory), io.
[[nodiscard]] Result<Sent> send_packet(FdView socket, std::span<const std::byte> bytes,
                                       std::span<const FdView> descriptors = {});

/// Whether the peer has read everything that was sent to it (SIOCOUTQ).
[[nodiscard]] bool all_read(FdView socket);

struct Peer {
  std::uint32_t pid = 0;  // 0: in another PID namespace
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<std::uint32_t> groups = {};  // as far as somebody asked for them: groups_of()
};
/// SO_PEERCRED, without groups. Errors: io.
[[nodiscard]] Result<Peer> peer_of(FdView socket);
/// SO_PEERGROUPS: the supplementary groups that the peer had when it connected. Errors: io.
[[nodiscard]] Result<std::vector<std::uint32_t>> groups_of(FdView socket);

}  // namespace wc::wire
