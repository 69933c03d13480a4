// What the daemon keeps for each entry of the catalog: the handles of its segments, and its
// manifest. Descriptors of device memory are never touched, only passed on; what goes leaves as a
// whole, for the helper to close. Knows nothing of names, states and leases.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/fd.hpp"
#include "catalog/ids.hpp"
#include "memory/types.hpp"

namespace wc::daemon {

struct StoredSegment {
  std::uint64_t bytes = 0;
  std::uint64_t address = 0;             // fixed virtual address; 0: any
  std::optional<memory::Handle> handle;  // nothing: not reserved or supplied yet
};

struct StoredEntry {
  memory::Transport transport = memory::Transport::host_fd;
  catalog::SessionId owner{};  // that loads it, or has loaded it
  bool loading = true;
  bool kept = false;        // by the supervisor too
  bool given_back = false;  // the catalog is done with it: goes when no job works on it
  unsigned jobs = 0;        // of the helper, that have views of its descriptors or will add some
  std::string device;
  std::string fingerprint;  // once published
  std::vector<StoredSegment> segments;
  Fd manifest;
  std::uint64_t manifest_bytes = 0;

  [[nodiscard]] bool complete() const;
  /// The manifest, then each segment that crosses by descriptor: what Attached carries.
  [[nodiscard]] std::vector<FdView> descriptors() const;
};

class Store {
 public:
  StoredEntry& add(catalog::EntryId entry, StoredEntry stored);
  [[nodiscard]] StoredEntry* find(catalog::EntryId entry);
  /// The entry is gone from here; its descriptors are the caller's.
  [[nodiscard]] std::vector<Fd> take(catalog::EntryId entry);
  /// How many descriptors there are or will be, a load's counted twice: sealing takes as many new
  /// ones as there are old ones.
  [[nodiscard]] std::size_t descriptor_count() const;
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] auto begin() const { return entries_.begin(); }
  [[nodiscard]] auto end() const { return entries_.end(); }

 private:
  std::unordered_map<catalog::EntryId, StoredEntry> entries_;
};

}  // namespace wc::daemon
