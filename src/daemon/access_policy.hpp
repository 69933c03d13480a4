// Who may do what, decided from what the kernel says of a peer's socket, once, before a byte of it
// is read. The daemon's own user and root may do everything; others what the two lists give them:
// reading, or publishing, which includes reading. Nobody but own and root operates. Plain values.
#pragma once

#include <cstdint>
#include <vector>

#include <sys/types.h>

#include "base/fd.hpp"
#include "base/result.hpp"
#include "wire/packet.hpp"

namespace wc::daemon {

/// At most kMaxListed of each.
struct AccessList {
  std::vector<uid_t> users;
  std::vector<gid_t> groups;  // a peer's effective or supplementary ones

  [[nodiscard]] bool empty() const { return users.empty() && groups.empty(); }
};

inline constexpr std::size_t kMaxListed = 256;

class AccessPolicy {
 public:
  struct Lists {
    AccessList read;
    AccessList publish;
  };

  /// `own` is the daemon's effective user.
  explicit AccessPolicy(uid_t own) : own_(own) {}
  AccessPolicy(uid_t own, Lists lists) : own_(own), lists_(std::move(lists)) {}

  /// SO_PEERCRED, and of SO_PEERGROUPS those groups that a list names. Errors: io.
  [[nodiscard]] Result<wire::Peer> identify(FdView socket) const;

  /// May say hello, and read what is published.
  [[nodiscard]] bool may_connect(const wire::Peer& peer) const {
    return may_publish(peer) || listed(lists_.read, peer);
  }
  /// May load, and hand descriptors in.
  [[nodiscard]] bool may_publish(const wire::Peer& peer) const {
    return may_operate(peer) || listed(lists_.publish, peer);
  }
  /// May evict, pin, drain and stop.
  [[nodiscard]] bool may_operate(const wire::Peer& peer) const {
    return peer.uid == own_ || peer.uid == 0;
  }

 private:
  [[nodiscard]] static bool listed(const AccessList& list, const wire::Peer& peer);
  [[nodiscard]] bool names_group(gid_t group) const;

  uid_t own_;
  Lists lists_;
};

}  // namespace wc::daemon
