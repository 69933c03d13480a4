// Waiting on a socket with a deadline and a cancellation. Inside this folder only.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "base/fd.hpp"
#include "base/result.hpp"
#include "client/cancellation.hpp"

namespace wc::client {

using Clock = std::chrono::steady_clock;

/// For limits: wait as long as it takes.
inline constexpr std::chrono::nanoseconds kNoLimit = std::chrono::nanoseconds::max();

/// Until when, and what ends it earlier.
struct Patience {
  Clock::time_point deadline = Clock::time_point::max();
  const Cancellation* cancellation = nullptr;

  [[nodiscard]] static Patience of(std::chrono::nanoseconds limit,
                                   const Cancellation* cancellation);
  [[nodiscard]] bool cancelled() const {
    return cancellation != nullptr && cancellation->is_cancelled();
  }
  [[nodiscard]] bool over() const { return Clock::now() >= deadline; }
  /// Zero where the deadline has passed.
  [[nodiscard]] std::chrono::nanoseconds left() const;
  /// The earlier of the deadline and a moment so far away.
  [[nodiscard]] Clock::time_point within(std::chrono::nanoseconds slice) const;
};

enum class Wake : std::uint8_t { ready, timed_out, cancelled };

/// Waits until the socket is ready for `events` (POLLIN, POLLOUT) or has ended. Errors: io.
[[nodiscard]] Result<Wake> wait_for(FdView socket, short events, const Patience& patience);

/// Waits for no more than a short while, unless cancelled. Errors: io.
[[nodiscard]] Result<Wake> pause_for(std::chrono::nanoseconds time, const Patience& patience);

/// The error of a wait that was not `ready`: timed_out ("WHAT: no answer within 10.0 s") or
/// cancelled.
[[nodiscard]] Error impatience(Wake wake, std::string_view what, std::chrono::nanoseconds limit);

}  // namespace wc::client
