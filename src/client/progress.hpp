// What a caller hears while it waits for somebody else's load.
#pragma once

#include <cstdint>
#include <functional>

#include "client/channel.hpp"
#include "wire/codec.hpp"

namespace wc::client {

/// Called from the waiting thread. `entry.done_bytes` of `entry.total_bytes` are there.
using ProgressFunction =
    std::function<void(const wire::fb::EntryInfoT& entry, std::uint64_t bytes_per_s)>;

/// Takes Progress events apart for it; nothing for nothing.
[[nodiscard]] EventFunction events_to(const ProgressFunction& on_progress);

/// The limit of a call that the daemon itself bounds by `wait`: a little longer, so that the
/// daemon's answer, which says more, is the one that is heard.
[[nodiscard]] std::chrono::nanoseconds beyond(std::chrono::nanoseconds wait);
/// For the wire: milliseconds, at least 1; 0 for kNoLimit.
[[nodiscard]] std::uint64_t wire_timeout(std::chrono::nanoseconds wait);

}  // namespace wc::client
