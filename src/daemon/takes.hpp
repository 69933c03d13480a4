// Packets that carry descriptors, taken in by the helper: the daemon itself receives none. A
// session waits until its packet has been taken; a descriptor that freezes the child that looks at
// it costs that child and its sender's connection. How many are under way is bounded, for each user
// and in all, so that frozen ones leave the helper free for others. Thread rule: the event loop's.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "base/fd.hpp"
#include "base/result.hpp"
#include "catalog/ids.hpp"
#include "daemon/event_loop.hpp"
#include "daemon/helper_client.hpp"
#include "daemon/limits.hpp"

namespace wc::daemon {

class Takes {
 public:
  /// A packet's descriptors, or why there are none: the packet is lost, and its connection with it.
  using Taken =
      std::move_only_function<void(catalog::SessionId session, Result<std::vector<Fd>> taken)>;

  Takes(EventLoop& loop, HelperClient& helper, const Limits& limits, Taken taken)
      : loop_(loop), helper_(helper), limits_(limits), taken_(std::move(taken)) {}
  Takes(const Takes&) = delete;
  Takes& operator=(const Takes&) = delete;

  struct Request {
    catalog::SessionId session{};
    std::uint32_t uid = 0;
    Fd socket;  // a copy of the session's
  };
  /// One of a session at a time. The answer comes later, once.
  void ask(Request request);
  [[nodiscard]] std::size_t stalled() const;

 private:
  struct UnderWay {
    catalog::SessionId session{};
    std::uint32_t uid = 0;
    bool stalled = false;
    EventLoop::Timer deadline;
  };
  enum class Room : std::uint8_t { now, later, none };

  [[nodiscard]] Room room_for(std::uint32_t uid) const;
  void start(Request request);
  void answered(std::uint64_t number, Result<HelperClient::Done> done);
  void on_deadline(std::uint64_t number);
  void start_waiting();

  EventLoop& loop_;
  HelperClient& helper_;
  const Limits& limits_;
  Taken taken_;
  std::map<std::uint64_t, UnderWay> under_way_;
  std::deque<Request> waiting_;  // one of a session at most
  std::uint64_t next_ = 1;
};

}  // namespace wc::daemon
