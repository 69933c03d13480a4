// What of the catalog outlives its process: everything about content that is resident, under which
// names and generations. What belongs to a process (sessions, loads, waiting requests) is not in
// it; leases are told apart, since they come and go a thousand times as often. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "catalog/ids.hpp"

namespace wc::catalog {

struct SavedDevice {
  std::string device;
  std::string budget_from;
  std::uint64_t budget_bytes = 0;
  std::uint64_t capacity_bytes = 0;
  bool operator==(const SavedDevice&) const = default;
};

struct SavedCounter {
  std::string name;
  std::string form;
  std::uint64_t last = 0;
  bool operator==(const SavedCounter&) const = default;
};

/// As in record.hpp.
struct SavedEntry {
  EntryId id = EntryId::none;
  bool draining = false;
  bool pinned = false;
  bool proven = false;
  std::uint8_t transport = 0;
  std::uint16_t device = 0;  // index in Snapshot::devices
  std::uint16_t segments = 0;
  std::uint32_t rank = 0;
  std::uint32_t world = 1;
  std::uint32_t tensors = 0;
  std::uint32_t publisher_uid = 0;
  std::uint64_t bytes = 0;
  std::uint64_t total_bytes = 0;
  std::uint64_t address = 0;
  std::int64_t since_unix_ns = 0;
  std::int64_t used_unix_ns = 0;
  std::int64_t used_ns = 0;        // of the steady clock, which goes on while the machine does
  std::int64_t guarded_ns = 0;     // the same
  std::int64_t keep_alive_ns = 0;  // INT64_MAX: for ever
  std::string form;
  std::string fingerprint;
  std::string structure;
  std::string source_digest;
  std::string source;
  std::string failure;
  std::vector<std::string> aliases;  // oldest first
  bool operator==(const SavedEntry&) const = default;
};

struct SavedSet {
  std::uint64_t id = 0;
  std::string name;
  std::string form;
  std::vector<EntryId> members;  // by rank; none: not there
  std::uint64_t generation = 0;
  std::uint64_t switched = 0;
  std::uint8_t status = 0;  // Set::Status
  bool operator==(const SavedSet&) const = default;
};

struct Snapshot {
  std::uint64_t switches = 0;
  std::uint64_t floor = 0;  // of generations
  std::vector<SavedDevice> devices;
  std::vector<SavedCounter> counters;  // by name and form
  std::vector<SavedEntry> entries;     // by id
  std::vector<SavedSet> sets;          // by id
  bool operator==(const Snapshot&) const = default;
};

struct SavedLease {
  LeaseId lease = LeaseId::none;
  std::uint64_t set = 0;
  std::uint32_t rank = 0;
  std::int64_t since_unix_ns = 0;
};

}  // namespace wc::catalog
