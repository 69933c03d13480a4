#include "client/waiting.hpp"

#include <algorithm>
#include <array>

#include <poll.h>

#include "base/units.hpp"

namespace wc::client {
namespace {

using std::chrono::nanoseconds;

// One poll of the sockets, for at most `time`; a negative number waits without limit.
Result<int> poll_for(std::array<pollfd, 2>& watched, nanoseconds time) {
  timespec limit = {};
  limit.tv_sec = static_cast<time_t>(time.count() / 1'000'000'000);
  limit.tv_nsec = static_cast<long>(time.count() % 1'000'000'000);
  const bool forever = time == kNoLimit;
  const int count = ::ppoll(watched.data(), watched.size(), forever ? nullptr : &limit, nullptr);
  if (count < 0 && errno != EINTR) return fail_errno("ppoll");
  return count;
}

// A negative descriptor is passed over by poll.
Result<Wake> wait(FdView socket, short events, const Patience& patience) {
  const int event = patience.cancellation == nullptr ? -1 : patience.cancellation->event().get();
  for (;;) {
    if (patience.cancelled()) return Wake::cancelled;
    std::array<pollfd, 2> watched = {pollfd{socket.get(), events, 0}, pollfd{event, POLLIN, 0}};
    const int count = TRY(poll_for(watched, patience.left()));
    if (patience.cancelled()) return Wake::cancelled;
    if (watched[0].revents != 0) return Wake::ready;
    if (count <= 0 && patience.over()) return Wake::timed_out;
  }
}

}  // namespace

Patience Patience::of(nanoseconds limit, const Cancellation* cancellation) {
  const auto now = Clock::now();
  const bool endless = limit >= Clock::time_point::max() - now;
  return {endless ? Clock::time_point::max() : now + limit, cancellation};
}

nanoseconds Patience::left() const {
  if (deadline == Clock::time_point::max()) return kNoLimit;
  return std::max(nanoseconds::zero(), nanoseconds(deadline - Clock::now()));
}

Clock::time_point Patience::within(nanoseconds slice) const {
  return std::min(deadline, Clock::now() + slice);
}

Result<Wake> wait_for(FdView socket, short events, const Patience& patience) {
  return wait(socket, events, patience);
}

Result<Wake> pause_for(nanoseconds time, const Patience& patience) {
  return wait(FdView(), 0, Patience{patience.within(time), patience.cancellation});
}

Error impatience(Wake wake, std::string_view what, nanoseconds limit) {
  if (wake == Wake::cancelled) return Error{Code::cancelled, format("{}: cancelled", what), {}};
  return Error{
      Code::timed_out, format("{}: no answer within {}", what, format_duration(limit)), {}};
}

}  // namespace wc::client
