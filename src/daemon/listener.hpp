// Takes connections in, a bounded number in each turn. Who the peer is comes from SO_PEERCRED
// before a byte of it is read; who may not connect, and who is one too many, is told why in a
// Failure without a request number, and closed.
//
// Out of descriptors, it takes the connection in with a spare one, tells, and closes: the queue
// gets shorter, nobody hangs, and the loop does not spin.
#pragma once

#include <functional>
#include <memory>

#include "base/fd.hpp"
#include "base/result.hpp"
#include "daemon/access_policy.hpp"
#include "daemon/event_loop.hpp"
#include "wire/packet.hpp"

namespace wc::daemon {

class Listener final : public EventHandler {
  // By create() only.
  struct Made {
    explicit Made() = default;
  };

 public:
  struct Options {
    AccessPolicy policy{0};
    std::size_t max_connections = 0;
    std::function<std::size_t()> connections;  // now
    std::move_only_function<Result<>(Fd socket, const wire::Peer& peer)> admit;
  };

  /// Errors: as EventLoop::watch; io (no spare descriptor to be had).
  [[nodiscard]] static Result<std::unique_ptr<Listener>> create(EventLoop& loop, Fd socket,
                                                                Options options);
  Listener(Made, EventLoop& loop, Fd socket, Options options)
      : loop_(loop), options_(std::move(options)), socket_(std::move(socket)) {}

  void on_ready(std::uint32_t events) override;

 private:
  bool accept_one();
  void accept_without_room(int number);
  void take_in(Fd connection);
  void pause();

  EventLoop& loop_;
  Options options_;
  Fd socket_;
  Fd spare_;
  EventLoop::Watch watch_;
  EventLoop::Timer resume_;
};

}  // namespace wc::daemon
