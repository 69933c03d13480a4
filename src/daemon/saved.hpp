// What outlives the daemon's process, as bytes and back (saved.fbs). Pure. What is read is checked
// as if it were foreign; a state of a later version is refused with the code `version`.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "catalog/snapshot.hpp"
#include "daemon/session.hpp"
#include "daemon/store.hpp"

namespace wc::daemon {

inline constexpr std::uint32_t kStateVersion = 1;

[[nodiscard]] std::string save_state(const catalog::Snapshot& snapshot);
/// Errors: version, corrupt.
[[nodiscard]] Result<catalog::Snapshot> read_state(std::span<const std::byte> bytes);

/// Without its descriptors, which are in StoredEntry::descriptors()'s order.
[[nodiscard]] std::string save_memory(const StoredEntry& entry);
/// Errors: corrupt (also where the number of descriptors is another one).
[[nodiscard]] Result<StoredEntry> read_memory(std::span<const std::byte> bytes,
                                              std::vector<Fd> descriptors);

[[nodiscard]] std::string save_connection(const PeerText& text);
[[nodiscard]] Result<PeerText> read_connection(std::span<const std::byte> bytes);

struct KeptLease {
  catalog::SavedLease lease;
  std::uint64_t request = 0;
};
[[nodiscard]] std::string save_lease(const KeptLease& lease);
/// The id is not in it.
[[nodiscard]] Result<KeptLease> read_lease(std::span<const std::byte> bytes);

}  // namespace wc::daemon
