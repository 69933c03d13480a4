// The daemon, from its lock to its end. `weightcache serve` is one call of serve(); what happens
// before (arguments, detaching) and after (the exit status) is the caller's.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/log.hpp"
#include "base/result.hpp"
#include "catalog/limits.hpp"
#include "daemon/access_policy.hpp"
#include "daemon/limits.hpp"

namespace wc::daemon {

struct DeviceBudget {
  std::string device;       // "cpu", or a GPU's UUID
  std::uint64_t bytes = 0;  // 0: no limit
};

/// What is known once clients are served.
struct Ready {
  std::filesystem::path socket;
  std::string epoch;
  pid_t pid = 0;
};

struct ServeOptions {
  std::filesystem::path socket;  // in a directory that is the daemon's alone
  std::optional<gid_t> group;    // may enter the directory too, and read
  AccessPolicy::Lists access;    // who else may read or publish; where empty, nobody reaches it
  /// The cpu's default is nine tenths of what the machine has and the control groups allow, the
  /// least; a GPU's, no limit but its own.
  std::vector<DeviceBudget> budgets;
  /// How long an entry makes no room for others after a reader of it died instead of detaching.
  std::chrono::nanoseconds keep_after_death = catalog::kProtection;
  Limits limits;
  Level log_level = Level::info;
  /// Under a supervisor of its own, which starts it again when it dies, with all that was
  /// published. Without one, everything ends with the process.
  bool supervised = true;
  /// Called once, in the calling process, when a client that connects is answered: for --detach,
  /// which lets the waiting parent go.
  std::function<void(const Ready&)> ready;
};

/// Serves until a client says Stop, or SIGTERM, SIGINT or SIGHUP comes. To be called where the
/// process has one thread: it forks. Supervised, the calling process becomes the supervisor, and
/// the daemon is its child. What it changes of the process (signal mask, SIGPIPE) it restores.
/// Errors: busy (another daemon serves there), denied, already_exists, invalid_argument, io.
Result<> serve(const ServeOptions& options);

}  // namespace wc::daemon
