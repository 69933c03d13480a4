// Packets on their way to one peer, in order. Bounded; never waits. A packet with descriptors goes
// out only when the peer has read everything before it, so that at most one such packet of each
// connection lies in the kernel.
//
// Descriptors are looked up when their packet's turn comes: what has been given back meanwhile is
// then not sent, a failure is in its place.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "base/fd.hpp"
#include "base/result.hpp"
#include "wire/codec.hpp"

namespace wc::daemon {

class SendQueue {
 public:
  /// The descriptors of a packet, for the moment of sending.
  using Descriptors = std::move_only_function<Result<std::vector<FdView>>()>;

  struct Packet {
    std::uint64_t request = 0;
    wire::Bytes bytes;
    Descriptors descriptors;  // empty: none
    std::uint64_t after = 0;  // may be sent once this is acknowledged
  };

  enum class State : std::uint8_t {
    empty,     // everything is with the peer
    no_room,   // until the socket is writable
    unread,    // until the peer has read what it has: no event tells that reliably
    held,      // until what it says is kept by the supervisor
    in_flight  // until fewer descriptors of this user are in flight: no event tells that
  };

  /// Errors: exhausted (the peer does not read; kMaxQueuedPackets, kMaxQueuedBytes).
  Result<> push(Packet packet);
  /// Sends what can be sent, and `kept` allows. Errors: as send_packet.
  using Kept = std::function<bool(std::uint64_t)>;
  Result<State> flush(FdView socket, const Kept& kept = {});

  [[nodiscard]] bool empty() const { return packets_.empty(); }
  /// Rises with each packet sent: whether the peer reads at all.
  [[nodiscard]] std::uint64_t sent() const { return sent_; }

 private:
  Result<State> send_first(FdView socket);

  std::deque<Packet> packets_;
  std::size_t bytes_ = 0;
  std::uint64_t sent_ = 0;
};

}  // namespace wc::daemon
