// A reader's right to an entry's residency, as it is told. A lease belongs to its session and ends
// with it. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "catalog/entry.hpp"
#include "catalog/ids.hpp"

namespace wc::catalog {

/// Who the session is (label, pid, ...) the daemon knows.
struct LeaseInfo {
  LeaseId lease = LeaseId::none;
  SessionId session{};
  EntryId entry = EntryId::none;
  std::string name;
  std::string form;
  std::string device;
  std::uint64_t generation = 0;
  std::uint64_t bytes = 0;  // of the entry
  std::uint32_t rank = 0;
  std::int64_t since_unix_ns = 0;
};

struct LeasePage {
  std::vector<LeaseInfo> leases;
  std::uint64_t next = 0;  // as in EntryPage; a page may be empty and not the last one
};

struct Attached {
  LeaseId lease = LeaseId::none;
  EntryInfo entry;
};

}  // namespace wc::catalog
