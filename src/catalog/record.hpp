// The records behind the catalog's tables. They refer to each other by address: every one is a node
// of a table that never moves it (Tables), and goes only through the functions there, which keep
// both ends of each reference. Nothing here is seen outside of this folder.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "catalog/entry.hpp"
#include "catalog/ids.hpp"
#include "catalog/requests.hpp"

namespace wc::catalog {

struct Entry;
struct Line;
struct Waiter;

/// Shared, since one text stands in many records.
using Text = std::shared_ptr<const std::string>;

/// A member's lease count is its own: of a set that was taken away, ranks go one by one.
struct Member {
  Entry* entry = nullptr;
  std::uint32_t leases = 0;
};

struct Set {
  enum class Status : std::uint8_t {
    pending,  // lacks ranks; not attachable
    current,
    old,  // attachable as NAME@GENERATION, while leased or pinned
    gone  // taken away; only its leases keep it
  };
  std::uint64_t id = 0;
  Line* line = nullptr;  // none once gone
  Text name;
  Text form;
  std::vector<Member> members;  // by rank
  std::uint64_t generation = 0;
  std::uint64_t switched = 0;  // which one of all switches made it current
  std::uint32_t leases = 0;
  Status status = Status::pending;

  [[nodiscard]] std::uint32_t world() const { return static_cast<std::uint32_t>(members.size()); }
  [[nodiscard]] bool attachable() const {
    return status == Status::current || status == Status::old;
  }
};

/// Where a set refers to an entry.
struct Place {
  Set* set = nullptr;
  std::uint32_t rank = 0;
  [[nodiscard]] Member& member() const { return set->members[rank]; }
  [[nodiscard]] Entry& entry() const { return *member().entry; }
  bool operator==(const Place&) const = default;
};

/// The rate of a load, smoothed over its reports.
class Rate {
 public:
  void report(Time at, std::uint64_t done_bytes);
  [[nodiscard]] std::uint64_t bytes_per_s() const { return static_cast<std::uint64_t>(per_s_); }

 private:
  Time at_{};
  std::uint64_t done_bytes_ = 0;
  double per_s_ = 0;
};

/// What an entry has while it is being loaded.
struct Load {
  SessionId session{};
  Line* line = nullptr;
  bool replace = false;
  bool sealing = false;  // between the two steps of publishing
  Rate rate;
  Time told{};                   // when those who wait were last told how far it is
  std::vector<Waiter*> waiters;  // for the right to load, first come first
  Waiter* room = nullptr;        // its own request for memory, while that waits
};

struct Entry {
  EntryId id = EntryId::none;
  std::unique_ptr<Load> load;  // only while it is being loaded
  bool found = true;           // in the indexes; false once its last name is gone
  bool draining = false;
  bool pinned = false;
  bool proven = false;  // a reader has mapped it and detached in order
  std::uint8_t transport = 0;
  std::uint16_t device = 0;
  std::uint16_t segments = 0;
  std::uint32_t rank = 0;  // as it was loaded; names may have others
  std::uint32_t world = 1;
  std::uint32_t tensors = 0;
  std::uint32_t leases = 0;
  std::uint32_t publisher_uid = 0;
  std::uint64_t bytes = 0;
  std::uint64_t done_bytes = 0;
  std::uint64_t total_bytes = 0;
  std::uint64_t address = 0;
  std::int64_t since_unix_ns = 0;
  std::int64_t used_unix_ns = 0;  // when `used` was
  Time used{};                    // last attached to or detached from, else published
  Time guarded{};                 // a reader of it died: kept until then
  std::chrono::nanoseconds keep_alive{0};
  Text form;
  std::string fingerprint;  // of a load: what begin() said; empty: unknown
  std::string structure;
  std::string source_digest;
  std::string source;
  std::string failure;  // why no reader can map it; empty: as far as is known, they can
  std::vector<const std::string*> aliases;  // keys of the alias index, oldest first
  std::vector<Place> places;                // the sets that refer to it, gone ones too
  std::vector<Waiter*> drains;
};

inline constexpr std::uint16_t kAnyDevice = UINT16_MAX;

struct Name;

/// What has generations of its own: a name's form for a world, of one process on one device.
struct Line {
  Name* name = nullptr;
  Text form;
  std::uint32_t world = 1;
  std::uint16_t device = kAnyDevice;  // of world 1
  Set* current = nullptr;
  Set* pending = nullptr;
  std::vector<Set*> old;
  std::vector<Entry*> loads;  // one a rank at most

  [[nodiscard]] bool empty() const {
    return current == nullptr && pending == nullptr && old.empty() && loads.empty();
  }
  [[nodiscard]] Entry* load_of(std::uint32_t rank) const {
    for (Entry* entry : loads) {
      if (entry->rank == rank) return entry;
    }
    return nullptr;
  }
};

/// Lives as long as it has a line.
struct Name {
  Text text;
  std::vector<std::unique_ptr<Line>> lines;
};

struct Session {
  SessionId id{};
  std::vector<EntryId> loads;
  std::vector<EntryId> cancelled;  // taken away and not yet told; the last few
  std::vector<Waiter*> waits;
  std::uint32_t leases = 0;
  std::uint32_t first_lease = UINT32_MAX;  // slot in the lease table
};

struct BeginWait {
  BeginRequest wanted;
  Entry* behind = nullptr;
};
struct EntryWait {
  Selector selector;
};
struct DrainWait {
  EntryInfo entry;  // as it was when the drain began
  std::vector<Entry*> left;
};

struct RoomWait {
  Entry* load = nullptr;
  std::vector<std::uint64_t> segment_bytes;
  std::uint64_t bytes = 0;
  bool promised = false;  // its room is free or being given back, and nobody else's
  std::vector<MadeRoom> evicted;
};

/// A request that waits.
struct Waiter {
  SessionId session{};
  RequestId request{};
  Time since{};
  Time deadline{};
  Time told{};  // its last Progress
  std::variant<BeginWait, EntryWait, DrainWait, RoomWait> what;
};

}  // namespace wc::catalog
