// What the catalog tells about an entry under one name, and what an entry is asked for by.
// Plain values.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "catalog/ids.hpp"

namespace wc::catalog {

/// The numbers are those of the wire.
enum class State : std::uint8_t { loading = 0, published = 1, draining = 2, gone = 3, failed = 4 };

/// Of a keep-alive: as long as it is not changed.
inline constexpr std::chrono::nanoseconds kForever = std::chrono::nanoseconds::max();

/// One entry under one of its names.
struct EntryInfo {
  EntryId id = EntryId::none;
  std::string name;
  std::string form;
  std::string fingerprint;  // 32 hexadecimal digits; empty while it is unknown
  std::string device;
  std::string source;            // where it was loaded from, for people
  std::uint64_t generation = 0;  // of the set; 0 while loading, or prepared for an incomplete set
  std::uint64_t bytes = 0;       // of its segments
  std::uint64_t done_bytes = 0;
  std::uint64_t total_bytes = 0;
  std::uint64_t address = 0;       // fixed virtual address of the first segment; 0: any
  std::int64_t since_unix_ns = 0;  // of publication, or of the load's start
  std::int64_t used_unix_ns = 0;   // when it was last attached to, or detached from; else published
  /// Until then it is not evicted to make room. 0: it may be; INT64_MAX: for ever.
  std::int64_t kept_until_unix_ns = 0;
  std::chrono::nanoseconds keep_alive{0};  // after each use; kForever
  std::uint32_t rank = 0;
  std::uint32_t world = 1;
  std::uint32_t tensors = 0;
  std::uint32_t publisher_uid = 0;  // whose process filled it: whom a reader has to trust
  std::uint32_t leases = 0;         // on the entry, whatever name they were asked for by
  std::uint16_t segments = 0;
  std::uint8_t transport = 0;  // wc::memory::Transport
  State state = State::loading;
  bool pinned = false;
};

/// Empty fields do not select. At least one of name, fingerprint and aliases must be there, unless
/// a list is asked for. Beside a name, fingerprint and aliases are conditions: `mismatch` where the
/// name has other content. A list, an eviction and leases() pass over the rank.
struct Selector {
  std::string name;
  std::uint64_t generation = 0;      // of the name; 0: the current one
  std::string fingerprint;           // a unique prefix of at least 4 hexadecimal digits
  std::vector<std::string> aliases;  // in this order, the first that is known decides
  std::string form;                  // empty: raw if there is one, else the only one
  std::string device;                // empty: the only one
  std::uint32_t rank = 0;
  std::uint32_t world = 0;  // 0: the only one
};

}  // namespace wc::catalog
