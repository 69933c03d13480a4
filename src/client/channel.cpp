#include "client/channel.hpp"

#include <algorithm>
#include <utility>

#include <poll.h>
#include <sys/socket.h>

#include "base/units.hpp"

namespace wc::client {
namespace {

using namespace std::chrono_literals;
using wire::fb::Body;

// A thread that follows can't poll a cancellation's descriptor; it looks at the flag so often.
constexpr std::chrono::nanoseconds kFollowSlice = 5ms;
// For the answer to a request that was cancelled.
constexpr std::chrono::nanoseconds kCancelGrace = 500ms;
constexpr std::chrono::nanoseconds kInFlightPause = 1ms;
// Events that a slow on_event has not taken: older ones are dropped.
constexpr std::size_t kMaxEvents = 16;
// Answers owed to nobody: a daemon that owes more is not answering at all.
constexpr std::size_t kMaxAbandoned = 1024;

bool is_event(Body type) { return type == Body::Progress; }

}  // namespace

Result<std::unique_ptr<Channel>> Channel::create(Fd socket, std::chrono::nanoseconds timeout) {
  auto channel = std::make_unique<Channel>(std::move(socket), timeout);
  TRY(channel->guard_.watch(channel->socket_));
  return channel;
}

std::uint64_t Channel::next_number() {
  if (forked()) return 1;  // the lock may be held for ever here; usable() refuses the call
  const std::lock_guard lock(mutex_);
  return ++last_number_;
}

Result<> Channel::usable() const {
  if (!forked()) return {};
  return fail(Code::invalid_argument,
              "this connection is the parent process's: a forked child makes one of its own");
}

std::optional<Error> Channel::broken() const {
  if (auto here = usable(); !here) return here.error();
  const std::lock_guard lock(mutex_);
  return broken_;
}

Result<Answer> Channel::exchange_packet(std::uint64_t number, Body type, const wire::Bytes& packet,
                                        const CallOptions& options) {
  TRY(usable());
  const auto limit = options.timeout == 0ns ? timeout_ : options.timeout;
  const auto patience = Patience::of(limit, options.cancellation);
  Slot slot;
  slot.request = type;
  slot.descriptors_due = options.descriptors_due;
  {
    const Lock lock(mutex_);
    // The daemon sends descriptors only to whoever has read everything before: so what a post()
    // left unread is read first.
    if (std::exchange(posted_, false) && !reading_) receive_all();
    if (broken_) return Failure(*broken_);
    waiting_.emplace(number, &slot);
  }
  auto sent = send(packet, options.descriptors, patience);
  // A daemon that has closed may have said why: that is still to be read.
  if (!sent && sent.error().code != Code::disconnected) {
    const Lock lock(mutex_);
    waiting_.erase(number);
    return Failure(std::move(sent).error().within(format("{}: ", wire::name_of(type))));
  }
  const auto wake = await(slot, patience, options.on_event);
  if (wake && *wake != Wake::ready) return give_up(number, slot, *wake, limit);
  const Lock lock(mutex_);
  waiting_.erase(number);
  if (!wake) return Failure(wake.error());
  return std::move(*slot.answer);
}

Result<bool> Channel::post_packet(const wire::Bytes& packet, std::chrono::nanoseconds limit) {
  TRY(usable());
  {
    const Lock lock(mutex_);
    posted_ = true;
    if (!reading_) receive_all();  // answers must not pile up where nobody calls
    if (broken_) return Failure(*broken_);
  }
  const auto sent = send(packet, {}, Patience::of(limit, nullptr));
  if (sent) return true;
  if (sent.error().code == Code::timed_out) return false;
  return Failure(sent.error());
}

Result<> Channel::send(const wire::Bytes& packet, std::span<const FdView> descriptors,
                       const Patience& patience) {
  std::unique_lock turn(sending_, std::defer_lock);
  while (!turn.try_lock_until(patience.within(kFollowSlice))) {
    if (patience.cancelled()) return Failure(impatience(Wake::cancelled, "send", {}));
    if (patience.over()) return fail(Code::timed_out, "another request waits to be sent");
  }
  return send_alone(packet, descriptors, patience);
}

Result<> Channel::send_alone(const wire::Bytes& packet, std::span<const FdView> descriptors,
                             const Patience& patience) {
  for (;;) {
    const auto sent = TRY(wire::send_packet(socket_, packet, descriptors));
    if (sent == wire::Sent::sent) return {};
    auto wake = Wake::timed_out;
    if (sent == wire::Sent::would_block) {
      // A daemon whose answers nobody reads stops reading requests: so reading goes on here.
      wake = TRY(wait_for(socket_, POLLIN | POLLOUT, patience));
      const Lock lock(mutex_);
      if (!reading_) receive_all();
      if (broken_) return Failure(*broken_);
    } else {
      wake = TRY(pause_for(kInFlightPause, patience));
      if (wake == Wake::timed_out && !patience.over()) wake = Wake::ready;
    }
    if (wake == Wake::cancelled) return Failure(impatience(wake, "send", {}));
    if (wake == Wake::timed_out) {
      const bool full = sent == wire::Sent::would_block;
      return fail(Code::timed_out, "{}",
                  full ? "the daemon does not read what is sent to it"
                       : "too many descriptors of this user wait unread in sockets");
    }
  }
}

Result<Wake> Channel::await(Slot& slot, const Patience& patience, const EventFunction& on_event) {
  Lock lock(mutex_);
  Result<Wake> wake = Wake::ready;
  for (;;) {
    if (!slot.events.empty()) deliver_events(lock, slot, on_event);
    if (slot.answer) break;
    if (broken_) {
      wake = Failure(*broken_);
    } else if (patience.cancelled()) {
      wake = Wake::cancelled;
    } else if (patience.over()) {
      wake = Wake::timed_out;
    } else if (reading_) {
      follow(lock, slot, patience);
      continue;
    } else {
      wake = lead(lock, patience);
      if (wake && *wake == Wake::ready) continue;
    }
    break;
  }
  pass_on();
  return wake;
}

void Channel::deliver_events(Lock& lock, Slot& slot, const EventFunction& on_event) {
  std::deque<wire::Bytes> events;
  events.swap(slot.events);
  if (!on_event) return;
  pass_on();
  lock.unlock();
  for (const wire::Bytes& event : events) {
    if (const auto message = wire::decode(event)) on_event(**message);
  }
  lock.lock();
}

void Channel::follow(Lock& lock, Slot& slot, const Patience& patience) {
  slot.follows = true;
  if (patience.cancellation != nullptr) {
    slot.wake.wait_until(lock, patience.within(kFollowSlice));
  } else if (patience.deadline == Clock::time_point::max()) {
    slot.wake.wait(lock);
  } else {
    slot.wake.wait_until(lock, patience.deadline);
  }
  slot.follows = false;
}

// Waits for the socket, without the lock, and hands out what has come, with it.
Result<Wake> Channel::lead(Lock& lock, const Patience& patience) {
  reading_ = true;
  lock.unlock();
  auto wake = wait_for(socket_, POLLIN, patience);
  lock.lock();
  reading_ = false;
  if (wake && *wake == Wake::ready) receive_all();
  if (to_give_back_.empty()) return wake;
  std::vector<wire::Bytes> packets;
  packets.swap(to_give_back_);
  lock.unlock();
  for (const wire::Bytes& packet : packets) {
    // Best effort: what can't be sent is given back by the connection's end.
    (void)send(packet, {}, Patience::of(kCancelGrace, nullptr));
  }
  lock.lock();
  return wake;
}

// Wakes one thread that follows, to lead from now on. With the lock.
void Channel::pass_on() {
  if (reading_) return;
  for (const auto& [number, slot] : waiting_) {
    if (!slot->follows) continue;
    slot->wake.notify_one();
    return;
  }
}

std::size_t Channel::descriptors_due() const {
  std::size_t due = 0;
  for (const auto& [number, slot] : waiting_) due = std::max(due, slot->descriptors_due);
  for (const auto& [number, call] : abandoned_) due = std::max(due, call.descriptors_due);
  return due;
}

// Reads until nothing is left, or until a caller has what it waits for: whoever leads next reads
// on. With the lock: the descriptors that are due must not change between looking and receiving.
void Channel::receive_all() {
  for (int packets = 0; packets < 16 && !broken_; ++packets) {
    wire::Packet packet;
    auto receipt = wire::receive_packet(socket_, buffer_->bytes, descriptors_due(), packet);
    if (!receipt) return break_with(std::move(receipt).error());
    if (*receipt == wire::Receipt::would_block) return;
    if (*receipt == wire::Receipt::end)
      return break_with({Code::disconnected, "the daemon closed the connection", {}});
    if (auto dispatched = dispatch(packet); !dispatched)
      return break_with(std::move(dispatched).error());
  }
}

Result<> Channel::dispatch(wire::Packet& packet) {
  const auto* message = TRY(wire::decode(packet.bytes));
  const std::uint64_t number = message->request();
  if (const auto found = waiting_.find(number); found != waiting_.end())
    return answer_slot(*found->second, packet, *message);
  if (const auto found = abandoned_.find(number); found != abandoned_.end()) {
    if (is_event(message->body_type())) return {};
    abandoned_.erase(found);
    give_back(*message);
    return {};
  }
  if (const auto asked = asked_after_.find(number); asked != asked_after_.end()) {
    lose(std::exchange(asked->second, 0));
    asked_after_.erase(asked);
    return {};
  }
  if (number == 0) {
    // Of no request: only a last word is known, and others may come to be.
    if (const auto* failure = message->body_as_Failure()) return Failure(wire::to_error(*failure));
    if (message->body_type() == wire::fb::Body::Resumed) ask_after_all();
    return {};
  }
  if (number <= last_number_) return {};  // answered twice, or long after it was forgotten
  return fail(Code::corrupt, "the daemon sent {} for the request {}, which was never made",
              wire::name_of(message->body_type()), number);
}

Result<> Channel::answer_slot(Slot& slot, wire::Packet& packet, const wire::fb::Message& message) {
  const bool event = is_event(message.body_type());
  const std::size_t due = event || slot.answer ? 0 : slot.descriptors_due;
  if (packet.descriptors.size() > due) {
    return fail(Code::corrupt, "the daemon sent {} descriptors with {} for {}, where {} are due",
                packet.descriptors.size(), wire::name_of(message.body_type()),
                wire::name_of(slot.request), due);
  }
  if (slot.answer) return {};
  wire::Bytes bytes(packet.bytes.begin(), packet.bytes.end());
  if (event) {
    if (slot.events.size() == kMaxEvents) slot.events.pop_front();
    slot.events.push_back(std::move(bytes));
  } else {
    Answer answer;
    answer.bytes = std::move(bytes);
    answer.message = wire::fb::GetMessage(answer.bytes.data());
    answer.descriptors = std::move(packet.descriptors);
    slot.answer = std::move(answer);
  }
  if (slot.follows) slot.wake.notify_one();
  return {};
}

// What a late answer grants to a call that is not there any more.
void Channel::give_back(const wire::fb::Message& message) {
  Result<wire::Bytes> packet = wire::Bytes();
  if (const auto* attached = message.body_as_Attached()) {
    wire::fb::DetachT detach;
    detach.lease = attached->lease();
    packet = wire::encode(++last_number_, detach);
  } else if (const auto* granted = message.body_as_Granted()) {
    wire::fb::AbandonT abandon;
    abandon.load = granted->load();
    abandon.code = static_cast<int>(Code::cancelled);
    abandon.message = "its caller did not wait for the right to load";
    packet = wire::encode(++last_number_, abandon);
  }
  if (packet && !packet->empty()) to_give_back_.push_back(std::move(*packet));
}

// The daemon is another one: it may never have heard of what waits here. The answer to a Cancel
// comes after those to all that it has read before.
void Channel::ask_after_all() {
  for (auto& [number, slot] : waiting_) {
    if (slot->answer) continue;
    wire::fb::CancelT cancel;
    cancel.request = number;
    const std::uint64_t asked = ++last_number_;
    if (auto packet = wire::encode(asked, cancel)) to_give_back_.push_back(std::move(*packet));
    asked_after_[asked] = number;
  }
}

// Whoever still waits when the daemon has answered what came after, waits for nothing.
void Channel::lose(std::uint64_t number) {
  const auto found = waiting_.find(number);
  if (found == waiting_.end() || found->second->answer) return;
  Slot& slot = *found->second;
  const Error error{Code::disconnected,
                    format("the daemon was started anew before it answered {}: try again",
                           wire::name_of(slot.request)),
                    {}};
  auto bytes = wire::encode(number, wire::to_failure(error));
  if (!bytes) return;
  Answer answer;
  answer.bytes = std::move(*bytes);
  answer.message = wire::fb::GetMessage(answer.bytes.data());
  slot.answer = std::move(answer);
  if (slot.follows) slot.wake.notify_one();
}

void Channel::abandon(std::uint64_t number, const Slot& slot) {
  waiting_.erase(number);
  abandoned_.emplace(number, Abandoned{slot.descriptors_due});
  if (abandoned_.size() > kMaxAbandoned) {
    break_with({Code::disconnected,
                format("the daemon owes {} answers", format_count(abandoned_.size())),
                {}});
  }
}

Result<Answer> Channel::give_up(std::uint64_t number, Slot& slot, Wake wake,
                                std::chrono::nanoseconds limit) {
  const auto name = wire::name_of(slot.request);
  wire::fb::CancelT cancel;
  cancel.request = number;
  const auto packet = TRY(wire::encode(next_number(), cancel));
  const bool told = send(packet, {}, Patience::of(kCancelGrace, nullptr)).has_value();
  if (wake == Wake::cancelled && told) {
    const auto answered = await(slot, Patience::of(kCancelGrace, nullptr), {});
    if (!answered || *answered == Wake::ready) {
      const Lock lock(mutex_);
      waiting_.erase(number);
      if (!answered) return Failure(answered.error());
      return std::move(*slot.answer);
    }
  }
  const Lock lock(mutex_);
  if (slot.answer) {  // another thread has read it meanwhile
    waiting_.erase(number);
    return std::move(*slot.answer);
  }
  abandon(number, slot);
  return Failure(impatience(wake, name, limit));
}

// With the lock. The socket is shut down, so that the daemon ends what this connection holds, and
// closed by the destructor only: other threads may poll it.
void Channel::break_with(Error reason) {
  if (broken_) return;
  broken_ = std::move(reason);
  ::shutdown(socket_.get(), SHUT_RDWR);
  for (const auto& [number, slot] : waiting_) slot->wake.notify_one();
}

}  // namespace wc::client
