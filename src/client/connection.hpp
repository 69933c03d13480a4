// A connection to a daemon: found, trusted, greeted. Attachments and publications keep it alive.
//
// Thread rule: any thread (see channel.hpp). A forked child can do nothing with its parent's
// connections but drop them: its copies of the sockets are closed, so that a lease ends with the
// process that took it; what is mapped stays mapped in both.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "client/address.hpp"
#include "client/cancellation.hpp"
#include "client/channel.hpp"
#include "wire/codec.hpp"

namespace wc::client {

struct ConnectOptions {
  std::string socket = {};  // empty: where address.hpp says
  std::string label = {};   // for people; empty: the program's name
  std::vector<std::uint32_t> trusted_uids =
      {};  // beside the own one, root's and $WEIGHTCACHE_TRUST
  std::chrono::nanoseconds timeout = std::chrono::seconds(10);  // of connecting, of each short call
  const Cancellation* cancellation = nullptr;                   // of connecting
  wire::VersionRange versions = {};
  Environment environment = process_environment();
};

struct DaemonInfo {
  std::string epoch;     // 32 hexadecimal digits: one incarnation of the daemon
  std::string software;  // "weightcache 0.1.0"
  std::string socket;    // the path that served
  std::int32_t pid = 0;  // as the daemon says; for people
  std::uint16_t protocol = 0;
  std::uint64_t capabilities = 0;
};

class Connection {
 public:
  /// Errors: disconnected (each path tried and why), denied (directory or listener of somebody
  /// else's), version (both ranges), timed_out, cancelled, corrupt (no daemon of this kind),
  /// invalid_argument, io.
  [[nodiscard]] static Result<std::shared_ptr<Connection>> connect(
      const ConnectOptions& options = {});

  /// Whose listener, and whose entries, are taken for what they say.
  struct Trust {
    std::uint32_t own_uid = 0;
    std::vector<std::uint32_t> others;  // the daemon's is among them
  };

  Connection(std::unique_ptr<Channel> channel, DaemonInfo daemon, Trust trust)
      : channel_(std::move(channel)), daemon_(std::move(daemon)), trust_(std::move(trust)) {}

  [[nodiscard]] const DaemonInfo& daemon() const { return daemon_; }
  [[nodiscard]] Channel& channel() { return *channel_; }
  [[nodiscard]] bool forked() const { return channel_->forked(); }
  /// Whether what this user published may be mapped: root's, the own one's, the daemon's, or one's
  /// of the trusted.
  [[nodiscard]] bool trusts(std::uint32_t publisher_uid) const {
    return is_trusted(publisher_uid, trust_.own_uid, trust_.others);
  }

  template <typename ReplyT, typename RequestT>
  [[nodiscard]] Result<ReplyT> call(const RequestT& request, const CallOptions& options = {}) {
    return channel_->call<ReplyT>(request, options);
  }

 private:
  std::unique_ptr<Channel> channel_;
  DaemonInfo daemon_;
  Trust trust_;
};

}  // namespace wc::client
