// One connection: receives packets, hands decoded messages to its owner, sends what it is given.
// Knows deadlines and backpressure, not what a message means. A peer that breaks the protocol, is
// silent where a hello is due, or does not read, is dropped; nobody else notices.
//
// While its queue waits for the peer, it reads no further request of that peer. It never frees
// itself: it tells its owner that it has ended, once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "base/result.hpp"
#include "catalog/ids.hpp"
#include "daemon/event_loop.hpp"
#include "daemon/limits.hpp"
#include "daemon/send_queue.hpp"
#include "wire/codec.hpp"
#include "wire/packet.hpp"

namespace wc::daemon {

class Session;

class SessionOwner {
 public:
  virtual ~SessionOwner() = default;
  /// How many descriptors may come with the next packet.
  [[nodiscard]] virtual std::size_t descriptors_due(const Session& session) = 0;
  /// The next packet, which is this message, has descriptors: has it taken in, and then calls
  /// Session::taken(). After an error the connection ends.
  [[nodiscard]] virtual Result<> take_descriptors(Session& session,
                                                  const wire::fb::Message& message) = 0;
  virtual void on_message(Session& session, const wire::fb::Message& message,
                          std::vector<Fd> descriptors) = 0;
  /// It does nothing any more, and may be destroyed once the present turn is over.
  virtual void on_ended(Session& session) = 0;
  /// What an answer that is given now rests on; 0: nothing. kept(): whether the supervisor has it;
  /// where not, the session's flush_held() is called when more is.
  [[nodiscard]] virtual std::uint64_t rests_on() { return 0; }
  [[nodiscard]] virtual bool kept(std::uint64_t /*batch*/) { return true; }
  virtual void hold(Session& /*session*/) {}
  /// Where every session receives: one at a time.
  [[nodiscard]] virtual std::span<std::byte> receive_buffer() = 0;
};

/// What the peer said of itself, for people.
struct PeerText {
  std::string label;
  std::string command;
  std::string container;
  std::uint64_t capabilities = 0;  // of its Hello
};

class Session final : public EventHandler {
  // By create() only.
  struct Made {
    explicit Made() = default;
  };

 public:
  struct Options {
    catalog::SessionId id{};
    wire::Peer peer;
    Limits limits;
  };

  /// Errors: as EventLoop::watch.
  [[nodiscard]] static Result<std::unique_ptr<Session>> create(EventLoop& loop, SessionOwner& owner,
                                                               Fd socket, const Options& options);

  Session(Made, EventLoop& loop, SessionOwner& owner, Fd socket, const Options& options)
      : loop_(loop), owner_(owner), options_(options), socket_(std::move(socket)) {}

  [[nodiscard]] catalog::SessionId id() const { return options_.id; }
  [[nodiscard]] const wire::Peer& peer() const { return options_.peer; }
  [[nodiscard]] const PeerText& text() const { return text_; }
  [[nodiscard]] bool greeted() const { return greeted_; }
  /// Whether its peer's descriptors are taken in, as far as the kernel can tell them apart.
  void let_descriptors_in(bool in);
  /// The hello was right: its deadline is over.
  void greet(PeerText text);

  template <typename BodyT>
  void send(std::uint64_t request, const BodyT& body, SendQueue::Descriptors descriptors = {}) {
    send_encoded(request, wire::encode(request, body), std::move(descriptors));
  }
  void send_failure(std::uint64_t request, const Error& error) {
    send(request, wire::to_failure(error));
  }
  /// Bytes that were encoded already. An error in their place is sent as a failure.
  void send_encoded(std::uint64_t request, Result<wire::Bytes> bytes,
                    SendQueue::Descriptors descriptors = {});
  /// Nothing waits to be read: the time for what may be left out, like progress.
  [[nodiscard]] bool idle() const { return queue_.empty(); }

  /// Sends a last failure, waits a little for it to be read, and ends.
  void part(std::uint64_t request, const Error& error);

  void on_ready(std::uint32_t events) override;
  void flush_held() {
    if (!ended_ && !queue_.empty()) flush();
  }
  [[nodiscard]] FdView socket() const { return socket_; }

  /// A copy of the connection, for the helper to take a packet from. Errors: exhausted.
  [[nodiscard]] Result<Fd> copy_of_socket() const;
  /// False: nothing that is taken in has a use for it any more.
  [[nodiscard]] bool wants_taken() const { return taking_ && !ended_ && !parting_; }
  /// The descriptors of the packet that take_descriptors() was asked for.
  void taken(Result<std::vector<Fd>> descriptors);

  /// After the end: what is left of the connection.
  [[nodiscard]] Fd take_socket() { return std::move(socket_); }

 private:
  void receive();
  bool receive_one();
  bool take_or_receive();
  bool receive_plain();
  void lose(const Error& error);
  void flush();
  void wait_for_peer(SendQueue::State state);
  void retry_later();
  void on_unread_deadline(std::uint64_t sent_before);
  void end(const Error* why);

  EventLoop& loop_;
  SessionOwner& owner_;
  Options options_;
  PeerText text_;
  Fd socket_;
  SendQueue queue_;
  bool greeted_ = false;
  bool parting_ = false;
  bool ended_ = false;
  bool taking_ = false;      // a packet of it is taken in elsewhere: nothing is read meanwhile
  wire::Bytes to_be_taken_;  // that packet
  std::uint64_t retried_at_ = ~std::uint64_t{0};  // as queue_.sent() counts
  std::chrono::milliseconds retry_interval_{0};
  EventLoop::Watch watch_;
  EventLoop::Timer deadline_;  // of the hello, then of parting
  EventLoop::Timer unread_;    // of the queue
  EventLoop::Timer retry_;
};

}  // namespace wc::daemon
