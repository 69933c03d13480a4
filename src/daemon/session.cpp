#include "daemon/session.hpp"

#include <algorithm>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/units.hpp"
#include "daemon/log.hpp"
#include "daemon/pass_rights.hpp"

namespace wc::daemon {
namespace {

using namespace std::chrono_literals;

// No event tells when descriptors of other sockets have been read; and the edge that tells when the
// peer has read comes, at times, a moment before the kernel has stopped counting the packet. So
// both are looked at again, at growing intervals.
constexpr std::chrono::milliseconds kFirstRetry = 1ms;
constexpr std::chrono::milliseconds kLastRetry = 128ms;

}  // namespace

Result<std::unique_ptr<Session>> Session::create(EventLoop& loop, SessionOwner& owner, Fd socket,
                                                 const Options& options) {
  auto session = std::make_unique<Session>(Made{}, loop, owner, std::move(socket), options);
  session->watch_ = TRY(loop.watch(session->socket_, EPOLLIN, *session));
  session->deadline_ = loop.at(Clock::now() + options.limits.hello, [self = session.get()] {
    const std::chrono::nanoseconds limit = self->options_.limits.hello;
    self->part(0, Error{Code::timed_out, format("no hello within {}", format_duration(limit)), {}});
  });
  return session;
}

void Session::greet(PeerText text) {
  greeted_ = true;
  text_ = std::move(text);
  deadline_.reset();
}

void Session::let_descriptors_in(bool in) { daemon::let_descriptors_in(socket_, in); }

void Session::on_ready(std::uint32_t events) {
  if (ended_) return;
  if (!queue_.empty() || taking_) {
    if ((events & (EPOLLHUP | EPOLLERR)) != 0) return end(nullptr);
    flush();
  }
  if (!ended_ && queue_.empty() && !parting_) receive();
}

void Session::receive() {
  for (std::size_t count = 0; count < kPacketsPerTurn; ++count) {
    if (taking_ || !receive_one() || ended_ || parting_ || !queue_.empty()) return;
  }
}

bool Session::receive_one() {
  return owner_.descriptors_due(*this) > 0 ? take_or_receive() : receive_plain();
}

void Session::lose(const Error& error) {
  if (error.code == Code::disconnected || error.code == Code::io) {
    end(&error);
  } else {
    part(0, error);
  }
}

// Where a descriptor may come, the packet is looked at first: one with a descriptor is the helper's
// to receive.
bool Session::take_or_receive() {
  const auto peeked = wire::peek_packet(socket_, owner_.receive_buffer());
  if (!peeked) {
    lose(peeked.error());
    return false;
  }
  if (peeked->receipt != wire::Receipt::packet || !peeked->descriptors) return receive_plain();
  const auto message = wire::decode(peeked->bytes);
  if (!message) {
    part(0, message.error());
    return false;
  }
  to_be_taken_.assign(peeked->bytes.begin(), peeked->bytes.end());
  taking_ = true;
  watch_.set(0);
  if (const auto asked = owner_.take_descriptors(*this, **message); !asked) {
    taking_ = false;
    part(0, asked.error());
  }
  return false;
}

bool Session::receive_plain() {
  wire::Packet packet;
  auto receipt = wire::receive_packet(socket_, owner_.receive_buffer(), 0, packet);
  if (!receipt) {
    lose(receipt.error());
    return false;
  }
  if (*receipt == wire::Receipt::would_block) return false;
  if (*receipt == wire::Receipt::end) {
    end(nullptr);
    return false;
  }
  const auto message = wire::decode(packet.bytes);
  if (!message) {
    part(0, message.error());
    return false;
  }
  owner_.on_message(*this, **message, {});
  return true;
}

Result<Fd> Session::copy_of_socket() const {
  Fd copy(::fcntl(socket_.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy) return fail_os(Code::exhausted, errno, "fcntl(F_DUPFD_CLOEXEC)");
  return copy;
}

void Session::taken(Result<std::vector<Fd>> descriptors) {
  taking_ = false;
  const wire::Bytes packet = std::exchange(to_be_taken_, {});
  if (!descriptors) return part(0, descriptors.error());
  const auto message = wire::decode(packet);
  if (!message) return part(0, message.error());
  if (queue_.empty()) watch_.set(EPOLLIN);
  owner_.on_message(*this, **message, std::move(*descriptors));
}

void Session::send_encoded(std::uint64_t request, Result<wire::Bytes> bytes,
                           SendQueue::Descriptors descriptors) {
  if (ended_ || parting_) return;
  if (!bytes) {
    const Error error = std::move(bytes).error();
    report(Level::error, "an answer cannot be sent: {}", error.message);
    descriptors = nullptr;
    bytes = wire::encode(request, wire::to_failure(error));
    if (!bytes) return end(&bytes.error());
  }
  const bool waiting = !queue_.empty();
  auto pushed =
      queue_.push({request, std::move(*bytes), std::move(descriptors), owner_.rests_on()});
  if (!pushed) return end(&pushed.error());
  if (!waiting) flush();
}

void Session::flush() {
  const auto state =
      queue_.flush(socket_, [this](std::uint64_t batch) { return owner_.kept(batch); });
  if (!state) {
    end(state.error().code == Code::disconnected ? nullptr : &state.error());
    return;
  }
  wait_for_peer(*state);
}

void Session::wait_for_peer(SendQueue::State state) {
  switch (state) {
    case SendQueue::State::empty:
      retry_.reset();
      unread_.reset();
      // The last words are with the peer, or in its queue, which outlives this end.
      if (parting_) return end(nullptr);
      watch_.set(taking_ ? 0U : EPOLLIN);
      return;
    case SendQueue::State::no_room:
      watch_.set(EPOLLOUT);
      break;
    case SendQueue::State::unread:
      watch_.set(EPOLLOUT | EPOLLET);
      retry_later();
      break;
    case SendQueue::State::held:
      watch_.set(0);
      owner_.hold(*this);
      return;
    case SendQueue::State::in_flight:
      watch_.set(0);
      retry_later();
      break;
  }
  if (unread_.armed()) return;
  unread_ = loop_.at(Clock::now() + options_.limits.unread,
                     [this, sent = queue_.sent()] { on_unread_deadline(sent); });
}

void Session::retry_later() {
  if (retry_.armed()) return;
  retry_interval_ =
      retried_at_ == queue_.sent() ? std::min(2 * retry_interval_, kLastRetry) : kFirstRetry;
  retried_at_ = queue_.sent();
  retry_ = loop_.at(Clock::now() + retry_interval_, [this] { flush(); });
}

void Session::on_unread_deadline(std::uint64_t sent_before) {
  if (queue_.sent() != sent_before) {  // slow, but it reads
    unread_ = loop_.at(Clock::now() + options_.limits.unread,
                       [this, sent = queue_.sent()] { on_unread_deadline(sent); });
    return;
  }
  const Error error{Code::timed_out,
                    format("it has read nothing for {}",
                           format_duration(std::chrono::nanoseconds(options_.limits.unread))),
                    {}};
  end(&error);
}

void Session::part(std::uint64_t request, const Error& error) {
  if (ended_ || parting_) return;
  report(Level::warning, "ends the connection of pid {} (user {}): {}", options_.peer.pid,
         options_.peer.uid, error.message);
  deadline_ = loop_.at(Clock::now() + options_.limits.parting, [this] { end(nullptr); });
  const bool waiting = !queue_.empty();
  auto bytes = wire::encode(request, wire::to_failure(error));
  if (!bytes || !queue_.push({request, std::move(*bytes), {}, owner_.rests_on()}))
    return end(nullptr);
  parting_ = true;
  if (!waiting) flush();
}

void Session::end(const Error* why) {
  if (std::exchange(ended_, true)) return;
  if (why != nullptr) {
    report(Level::warning, "drops the connection of pid {} (user {}): {}", options_.peer.pid,
           options_.peer.uid, why->message);
  }
  watch_.reset();
  deadline_.reset();
  unread_.reset();
  retry_.reset();
  owner_.on_ended(*this);
}

}  // namespace wc::daemon
