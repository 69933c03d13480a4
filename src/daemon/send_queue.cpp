#include "daemon/send_queue.hpp"

#include "base/units.hpp"
#include "daemon/limits.hpp"
#include "wire/packet.hpp"

namespace wc::daemon {

Result<> SendQueue::push(Packet packet) {
  if (packets_.size() >= kMaxQueuedPackets || bytes_ + packet.bytes.size() > kMaxQueuedBytes) {
    return fail(Code::exhausted, "{} packets ({}) wait to be read", packets_.size(),
                format_bytes(bytes_));
  }
  bytes_ += packet.bytes.size();
  packets_.push_back(std::move(packet));
  return {};
}

// `empty` here means that the first packet is gone.
Result<SendQueue::State> SendQueue::send_first(FdView socket) {
  Packet& first = packets_.front();
  std::vector<FdView> descriptors;
  if (first.descriptors) {
    if (!wire::all_read(socket)) return State::unread;
    auto found = first.descriptors();
    if (found) {
      descriptors = std::move(*found);
    } else {
      bytes_ -= first.bytes.size();
      first.descriptors = nullptr;
      first.bytes = TRY(wire::encode(first.request, wire::to_failure(found.error())));
      bytes_ += first.bytes.size();
    }
  }
  const wire::Sent sent = TRY(wire::send_packet(socket, first.bytes, descriptors));
  if (sent == wire::Sent::would_block) return State::no_room;
  if (sent == wire::Sent::descriptors_in_flight) return State::in_flight;
  ++sent_;
  bytes_ -= first.bytes.size();
  packets_.pop_front();
  return State::empty;
}

Result<SendQueue::State> SendQueue::flush(FdView socket, const Kept& kept) {
  while (!packets_.empty()) {
    if (const std::uint64_t after = packets_.front().after; after != 0 && kept && !kept(after))
      return State::held;
    const State state = TRY(send_first(socket));
    if (state != State::empty) return state;
  }
  return State::empty;
}

}  // namespace wc::daemon
