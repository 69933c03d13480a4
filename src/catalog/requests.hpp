// What the catalog is asked by publishers, readers and operators, and what it answers. Plain
// values; the daemon makes them from messages and makes messages from them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "catalog/entry.hpp"
#include "catalog/ids.hpp"

namespace wc::catalog {

/// A request for the right to load.
struct BeginRequest {
  std::string name;
  std::string form;  // empty: raw
  std::string device;
  std::string fingerprint;           // 32 hexadecimal digits; empty: unknown
  std::vector<std::string> aliases;  // of the source, best first
  std::string structure;             // equal content has an equal one; empty: unknown
  std::string source;                // for people
  std::uint64_t total_bytes = 0;     // expected, for those who wait
  std::uint32_t publisher_uid = 0;   // as the kernel says
  std::uint64_t capacity_bytes = 0;  // of the device, as its loader sees it; 0: unknown
  std::uint64_t address = 0;         // fixed virtual address of the first segment; 0: any
  std::uint32_t rank = 0;
  std::uint32_t world = 1;
  std::uint8_t transport = 0;
  bool replace = false;
  bool wait = false;             // else `busy` where somebody is loading it
  std::optional<Time> deadline;  // of the wait; none: kMaxWait
  std::chrono::nanoseconds keep_alive{
      0};  // see EntryInfo; of what is resident the longer one counts
};

/// The right to load: until it is published or abandoned, or the session ends.
struct Granted {
  EntryId load = EntryId::none;
};
/// The content is there, under the name that was asked for. generation 0: prepared, for a set that
/// lacks other ranks.
struct Resident {
  EntryInfo entry;
};
using Decision = std::variant<Granted, Resident>;

/// What a reader says of an entry that it could not map.
struct Rejection {
  std::string why;
  std::uint32_t uid = 0;  // the reader's, as the kernel says
  bool corrupt = false;   // the entry is not what its publisher says
  bool trusted = false;   // the reader could have published it itself
};
struct Rejected {
  EntryInfo entry;
  bool failed = false;  // by this rejection
};

/// Further segments of a load.
struct ReserveRequest {
  EntryId load = EntryId::none;
  std::vector<std::uint64_t> segment_bytes;
  /// Until when to wait for room that others hold; none: not at all. What only has to be given back
  /// is waited for in any case.
  std::optional<Time> room_deadline;
};

/// What was evicted to make room: one name of it.
struct MadeRoom {
  std::string name;
  std::uint64_t generation = 0;  // 0: it lacked ranks
  std::uint64_t bytes = 0;       // on the device that needed room
};

/// What reserve() added to the load.
struct Reservation {
  std::uint16_t first_segment = 0;  // index of the first of the new ones
  std::uint16_t segments = 0;       // new ones
  std::uint64_t bytes = 0;          // of the new ones
  std::uint64_t total_bytes = 0;    // of the load's, old and new
  std::vector<MadeRoom> evicted;    // for it
};

struct PublishRequest {
  std::string fingerprint;           // 32 hexadecimal digits
  std::vector<std::string> aliases;  // beside those of begin(), best first
};

/// What the check of the sealed memory found.
struct Summary {
  std::string fingerprint;    // of the manifest; must be the one of publish_begin()
  std::string source_digest;  // of the fingerprint's source part; empty: unknown. A name belongs to
                              // one source, and a set has no members of two
  std::uint32_t tensors = 0;
};

/// The numbers are those of the wire.
enum class Outcome : std::uint8_t { loaded = 0, already_resident = 1, prepared = 2 };

struct Publication {
  EntryInfo entry;
  Outcome outcome = Outcome::loaded;
};

/// A list's page. `next` is what the following call takes as `after`; 0: this was the last page.
struct EntryPage {
  std::vector<EntryInfo> entries;
  std::uint64_t next = 0;
};

struct Evicted {
  std::uint32_t entries = 0;  // entries that lost a name, counted once for each name and rank
  std::uint64_t bytes = 0;    // given back, now or when the last of `leases` ends
  std::uint32_t leases = 0;
};

}  // namespace wc::catalog
