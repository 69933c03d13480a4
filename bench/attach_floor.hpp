// What an attach can't be faster than: connecting to a socket, one round trip that brings two
// descriptors, mapping both, and giving all of it back.
#pragma once

#include <chrono>

namespace wc::bench {

/// The median of so many runs, against a process that does nothing but answer.
[[nodiscard]] std::chrono::nanoseconds round_trip_floor(int runs);

}  // namespace wc::bench
