// The catalog's names for things: numbers that are never used twice while the catalog lives, each
// of a type of its own; and the time, which always comes from the caller.
#pragma once

#include <chrono>
#include <cstdint>

namespace wc::catalog {

/// A connection. Chosen by the daemon, one for each connection, never again.
enum class SessionId : std::uint64_t {};
/// A request of a session, as its client numbered it: what a waiting request is named by.
enum class RequestId : std::uint64_t {};
/// An entry, from the grant of the load to the release of its memory: the `load` of the wire, and
/// the key under which the daemon stores descriptors.
enum class EntryId : std::uint64_t { none = 0 };
/// A reader's hold on an entry.
enum class LeaseId : std::uint64_t { none = 0 };

using Time = std::chrono::steady_clock::time_point;

struct Now {
  Time steady;               // deadlines and rates are made of it
  std::int64_t unix_ns = 0;  // what people are shown
};

}  // namespace wc::catalog
