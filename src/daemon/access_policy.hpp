// Who may do what, decided from SO_PEERCRED alone, before a byte of the peer's is read. Today the
// daemon's own user and root may do everything and nobody else anything; lists of users and groups
// come in here, and nowhere else. Plain values.
#pragma once

#include <sys/types.h>

#include "wire/packet.hpp"

namespace wc::daemon {

class AccessPolicy {
 public:
  /// `own` is the daemon's effective user.
  explicit AccessPolicy(uid_t own) : own_(own) {}

  /// May say hello, and read what is published.
  [[nodiscard]] bool may_connect(const wire::Peer& peer) const { return trusted(peer); }
  /// May load, and hand descriptors in.
  [[nodiscard]] bool may_publish(const wire::Peer& peer) const { return trusted(peer); }
  /// May evict, pin, drain and stop.
  [[nodiscard]] bool may_operate(const wire::Peer& peer) const { return trusted(peer); }

 private:
  [[nodiscard]] bool trusted(const wire::Peer& peer) const {
    return peer.uid == own_ || peer.uid == 0;
  }
  uid_t own_;
};

}  // namespace wc::daemon
