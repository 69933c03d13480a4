// What a call of the catalog leaves for the daemon to do, in order. The catalog has already made
// its own part of it when the effect appears.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "catalog/entry.hpp"
#include "catalog/ids.hpp"
#include "catalog/requests.hpp"

namespace wc::catalog {

/// Give the entry's memory back, then call released(). Appears once for each entry that ever
/// reserved anything. A reservation that is still being made for it counts as part of it.
struct ReleaseMemory {
  EntryId entry = EntryId::none;
  std::uint64_t bytes = 0;
};

/// A waiting request has its answer: Granted or Resident for begin(), Reservation for reserve(),
/// EntryInfo for wait() and drain(), an Error for any of them. Appears once for each request that
/// was told to wait, unless its session ends first.
struct Answer {
  SessionId session{};
  RequestId request{};
  std::variant<Granted, Resident, Reservation, EntryInfo, Error> what;
};

/// How far the load is that a request waits for. Each request gets one at once and then at most
/// one in kProgressInterval. The record is shared by all who wait for the load.
struct Progress {
  SessionId session{};
  RequestId request{};
  std::shared_ptr<const EntryInfo> entry;
  std::uint64_t rate_bytes_per_s = 0;  // 0: not known yet
};

/// A load was taken away from its session (by an eviction with force). Whatever the session asks
/// for it from now on is answered `cancelled`; its memory has an effect of its own.
struct CancelLoad {
  SessionId session{};
  EntryId load = EntryId::none;
};

/// Entries that nobody used were evicted for a load, least recently used first: for the log.
struct EvictedForRoom {
  EntryId load = EntryId::none;
  std::string name;  // of the load
  std::string device;
  std::uint64_t needed_bytes = 0;
  std::vector<MadeRoom> evicted;
};

using Effect = std::variant<ReleaseMemory, Answer, Progress, CancelLoad, EvictedForRoom>;

}  // namespace wc::catalog
