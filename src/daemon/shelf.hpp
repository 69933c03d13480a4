// What the supervisor keeps for the daemon, and the packets between the two. Items have a key, some
// bytes that only the daemon understands, and descriptors. A batch of changes holds together: the
// supervisor makes all of it its own in one step, or, where its last packet never comes, nothing.
//
// Both ends are the same program and trust each other as themselves; what is indexed with is still
// checked.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "base/result.hpp"
#include "wire/packet.hpp"

namespace wc::daemon {

enum class Shelved : std::uint8_t { state = 1, memory = 2, connection = 3, lease = 4 };

/// Items of a group can be dropped together: the leases of a connection.
struct ShelfKey {
  Shelved kind = Shelved::state;
  std::uint64_t group = 0;
  std::uint64_t id = 0;
  auto operator<=>(const ShelfKey&) const = default;
};

struct ShelfItem {
  std::string bytes;
  bool spilled = false;  // the first descriptor is a memfd with the bytes
  std::vector<Fd> descriptors;
};

using Shelf = std::map<ShelfKey, ShelfItem>;

/// The item's bytes, wherever they are. Takes the memfd out of its descriptors. Errors: io,
/// corrupt.
[[nodiscard]] Result<std::string> bytes_of(ShelfItem& item);

enum class LinkWord : std::uint8_t {
  change = 1,        // to the supervisor: changes, of a batch
  acknowledged = 2,  // from it: the batch is its own
  ready = 3,         // to it: clients are answered; text: the epoch
  failed = 4,        // to it: it can't start; number: the code, text: why
  ended = 5,         // to it: it ends in order, and is not to be started again
};

struct Change {
  enum class Step : std::uint8_t { put = 1, drop = 2, drop_group = 3 };
  Step step = Step::put;
  ShelfKey key;
  std::string bytes;
  bool spilled = false;
  std::vector<Fd> owned;        // sent, then closed here; before the views
  std::vector<FdView> views;    // borrowed until they are sent
  std::vector<Fd> descriptors;  // as they were received
};

struct LinkMessage {
  LinkWord word = LinkWord::change;
  bool last = false;         // of the batch
  std::uint64_t number = 0;  // of the batch; of a failure: its code
  std::string text;
  std::vector<Change> changes;
};

inline constexpr std::size_t kMaxInlineBytes = 16 * 1024;

[[nodiscard]] std::string encode_link(const LinkMessage& message);
/// Takes the descriptors, in order. Errors: corrupt.
[[nodiscard]] Result<LinkMessage> decode_link(std::span<const std::byte> bytes,
                                              std::vector<Fd> descriptors);

/// Cuts a batch into messages that a packet has room for, the last one marked. What is longer than
/// kMaxInlineBytes goes into a memfd. Errors: io.
[[nodiscard]] Result<std::vector<LinkMessage>> pack_batch(std::uint64_t number,
                                                          std::vector<Change> changes);

/// What the change takes off the shelf is returned: its close may take long.
std::vector<Fd> apply(Shelf& shelf, Change change);

}  // namespace wc::daemon
