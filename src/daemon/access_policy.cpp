#include "daemon/access_policy.hpp"

#include <algorithm>

namespace wc::daemon {
namespace {

template <typename T>
bool has(const std::vector<T>& list, T wanted) {
  return std::ranges::find(list, wanted) != list.end();
}

}  // namespace

bool AccessPolicy::listed(const AccessList& list, const wire::Peer& peer) {
  return has(list.users, peer.uid) || has(list.groups, peer.gid) ||
         std::ranges::any_of(peer.groups, [&](gid_t group) { return has(list.groups, group); });
}

bool AccessPolicy::names_group(gid_t group) const {
  return has(lists_.read.groups, group) || has(lists_.publish.groups, group);
}

// What no list names is not kept: a peer may be in 65,536 groups.
Result<wire::Peer> AccessPolicy::identify(FdView socket) const {
  wire::Peer peer = TRY(wire::peer_of(socket));
  if (lists_.read.groups.empty() && lists_.publish.groups.empty()) return peer;
  peer.groups = TRY(wire::groups_of(socket));
  std::erase_if(peer.groups, [this](gid_t group) { return !names_group(group); });
  return peer;
}

}  // namespace wc::daemon
