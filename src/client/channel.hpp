// Requests and answers over one socket, for any number of threads. There is no background thread:
// of the threads that wait for an answer one at a time reads the socket (the leader), hands to the
// others what is theirs, and passes the reading on when it has its own.
//
// Thread rule: any thread, at any time; on_event is called from the calling thread, without a lock,
// and may use the channel. After the first protocol error, or the end of the connection, every call
// fails with that same reason.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/fd.hpp"
#include "base/result.hpp"
#include "client/cancellation.hpp"
#include "client/fork_guard.hpp"
#include "client/waiting.hpp"
#include "wire/codec.hpp"
#include "wire/packet.hpp"

namespace wc::client {

using EventFunction = std::function<void(const wire::fb::Message&)>;

struct CallOptions {
  std::chrono::nanoseconds timeout{0};  // 0: the channel's; kNoLimit
  const Cancellation* cancellation = nullptr;
  EventFunction on_event = {};               // Progress, while it waits
  std::span<const FdView> descriptors = {};  // go with the request
  std::size_t descriptors_due = 0;           // may come with the answer, at most
};

/// For what a destructor says to a daemon: it may wait for other threads' turns, not for long.
inline constexpr std::chrono::nanoseconds kLastWords = std::chrono::milliseconds(200);

struct Answer {
  wire::Bytes bytes;
  const wire::fb::Message* message = nullptr;  // in `bytes`
  std::vector<Fd> descriptors;
};

class Channel {
 public:
  /// Takes a connected socket. `timeout` is that of calls without one of their own.
  /// Errors: io.
  [[nodiscard]] static Result<std::unique_ptr<Channel>> create(Fd socket,
                                                               std::chrono::nanoseconds timeout);
  Channel(Fd socket, std::chrono::nanoseconds timeout)
      : timeout_(timeout), socket_(std::move(socket)) {}
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// Sends a request and waits for what answers it, a Failure included. A call that is cancelled
  /// tells the daemon, and waits a moment for the answer: one that was given already counts.
  /// Errors: timed_out, cancelled, disconnected (why), corrupt (the daemon broke the protocol),
  /// invalid_argument (a part too long; a forked child), exhausted (larger than a packet), io.
  template <typename RequestT>
  [[nodiscard]] Result<Answer> exchange(const RequestT& request, const CallOptions& options = {}) {
    const std::uint64_t number = next_number();
    const auto packet = TRY(wire::encode(number, request));
    constexpr auto kType = wire::fb::BodyTraits<typename RequestT::TableType>::enum_value;
    return exchange_packet(number, kType, packet, options);
  }

  /// The same where one type of answer is right; a Failure becomes its Error.
  template <typename ReplyT, typename RequestT>
  [[nodiscard]] Result<ReplyT> call(const RequestT& request, const CallOptions& options = {}) {
    const auto answer = TRY(exchange(request, options));
    return wire::body_as<ReplyT>(*answer.message);
  }

  /// Sends what is not answered, or whose answer nobody waits for. Where the socket is full, or
  /// another thread is sending, for longer than `limit`, it is left out, and `false`.
  /// Errors: as exchange().
  template <typename RequestT>
  [[nodiscard]] Result<bool> post(const RequestT& request,
                                  std::chrono::nanoseconds limit = std::chrono::nanoseconds(0)) {
    const auto packet = TRY(wire::encode(next_number(), request));
    return post_packet(packet, limit);
  }

  [[nodiscard]] std::chrono::nanoseconds timeout() const { return timeout_; }
  /// This process is a child of the one that made the channel.
  [[nodiscard]] bool forked() const { return guard_.forked(); }
  /// Why it can't be used any more, if so.
  [[nodiscard]] std::optional<Error> broken() const;

 private:
  // A call that waits: on its thread's stack, known by its number.
  struct Slot {
    wire::fb::Body request{};
    std::size_t descriptors_due = 0;
    std::deque<wire::Bytes> events;
    std::optional<Answer> answer;
    bool follows = false;  // waits for `wake`
    std::condition_variable wake;
  };
  // A call that was given up: its answer is still to come, and what it grants must be given back.
  struct Abandoned {
    std::size_t descriptors_due = 0;
  };
  using Lock = std::unique_lock<std::mutex>;

  [[nodiscard]] std::uint64_t next_number();
  [[nodiscard]] Result<> usable() const;
  [[nodiscard]] Result<Answer> exchange_packet(std::uint64_t number, wire::fb::Body type,
                                               const wire::Bytes& packet,
                                               const CallOptions& options);
  [[nodiscard]] Result<bool> post_packet(const wire::Bytes& packet, std::chrono::nanoseconds limit);
  [[nodiscard]] Result<> send(const wire::Bytes& packet, std::span<const FdView> descriptors,
                              const Patience& patience);
  [[nodiscard]] Result<> send_alone(const wire::Bytes& packet, std::span<const FdView> descriptors,
                                    const Patience& patience);
  [[nodiscard]] Result<Wake> await(Slot& slot, const Patience& patience,
                                   const EventFunction& on_event);
  [[nodiscard]] Result<Answer> give_up(std::uint64_t number, Slot& slot, Wake wake,
                                       std::chrono::nanoseconds limit);
  void abandon(std::uint64_t number, const Slot& slot);
  void deliver_events(Lock& lock, Slot& slot, const EventFunction& on_event);
  [[nodiscard]] Result<Wake> lead(Lock& lock, const Patience& patience);
  void follow(Lock& lock, Slot& slot, const Patience& patience);
  void pass_on();
  [[nodiscard]] std::size_t descriptors_due() const;
  void receive_all();
  [[nodiscard]] Result<> dispatch(wire::Packet& packet);
  [[nodiscard]] Result<> answer_slot(Slot& slot, wire::Packet& packet,
                                     const wire::fb::Message& message);
  void give_back(const wire::fb::Message& message);
  void ask_after_all();
  void lose(std::uint64_t number);
  void break_with(Error reason);

  const std::chrono::nanoseconds timeout_;
  // No condition variable may live here: destroying one waits for its waiters, and in a forked
  // child they are not there any more.
  std::timed_mutex sending_;
  mutable std::mutex mutex_;  // of everything below
  Fd socket_;                 // stays open until the end: other threads poll it
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, Slot*> waiting_;
  std::map<std::uint64_t, Abandoned> abandoned_;
  std::vector<wire::Bytes> to_give_back_;
  std::map<std::uint64_t, std::uint64_t> asked_after_;  // by the Cancel that asks
  std::optional<Error> broken_;
  bool reading_ = false;  // some thread leads
  bool posted_ = false;   // an answer that nobody waits for may lie in the socket
  std::unique_ptr<wire::PacketBuffer> buffer_ = std::make_unique<wire::PacketBuffer>();
  ForkGuard guard_;
};

}  // namespace wc::client
