// The one place where the command line meets the daemon: everything else talks to it through the
// public header.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace wc::cli {

struct ServeRequest {
  std::string socket;                      // empty: the default
  std::string group;                       // a name or a number; empty: none
  std::vector<std::string> budgets;        // DEVICE=SIZE
  std::vector<std::string> allow_read;     // USER or @GROUP, by name or number
  std::vector<std::string> allow_publish;  // the same
  std::chrono::nanoseconds keep_after_death = std::chrono::minutes(10);
  std::string log_level = "info";
};

struct Service {
  std::string socket;
  std::string epoch;
  std::int64_t pid = 0;
};

/// Where the daemon of this user listens unless told otherwise: $WEIGHTCACHE_SOCKET; for root
/// /run/weightcache/socket; for others weightcache/socket in $XDG_RUNTIME_DIR, or
/// /tmp/weightcache-UID/socket. Absolute.
[[nodiscard]] Result<std::string> serving_socket(const std::string& asked);

/// The log of a detached daemon, beside its socket, opened for appending. A directory that is not
/// this user's alone gets none: the daemon will refuse it. Errors: io, denied.
[[nodiscard]] Result<Fd> open_log(const std::string& socket);
[[nodiscard]] std::string log_path(const std::string& socket);

/// Serves until it is stopped; `ready` is called when clients are answered. Errors: as
/// daemon::serve, and invalid_argument.
Result<> serve_until_stopped(const ServeRequest& request,
                             const std::function<void(const Service&)>& ready);

/// What serve_until_stopped would refuse at once, said before anything is started.
[[nodiscard]] Result<> check_request(const ServeRequest& request);

}  // namespace wc::cli
