// The supervisor: the daemon's parent, or beside it where the daemon had to start one anew. It
// keeps duplicates of what must outlive the daemon (shelf.hpp), understands none of it, and starts
// the next daemon with all of it when one dies: at once, then at growing intervals while they die
// young. It does nothing else, so that nothing else can end it.
//
// The daemon counts as dead when its end of the link is closed or its process has ended. Where it
// said before that it ends in order, the supervisor ends too.
//
// Single-threaded. The daemon is forked, never executed: it finds the shelf in its memory.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/fd.hpp"
#include "base/result.hpp"
#include "daemon/shelf.hpp"

namespace wc::daemon {

class Supervisor {
 public:
  struct Options {
    /// Open in both all their lives: the listening socket, the lock.
    std::vector<FdView> shared;
    /// The daemon, in a process of its own; what it returns is the process's exit status.
    std::function<int(Fd& link, Shelf& shelf)> daemon;
    /// Clients of the first daemon are answered: its pid and epoch.
    std::function<void(pid_t daemon, const std::string& epoch)> ready;
  };

  explicit Supervisor(const Options& options) : options_(options) {}

  /// Until a daemon ends in order. `signals` are passed on to the daemon. Errors: those with which
  /// the first daemon could not start; io.
  Result<> run(FdView signals);
  /// Beside a daemon that lives already and has lost its supervisor; `process` is its pidfd.
  Result<> run_beside(Fd link, Fd process, FdView signals);

 private:
  Result<> start();
  Result<> turn(FdView signals);
  void receive();
  void take(LinkMessage message);
  void make_own();
  Result<> on_death();
  void pass_on(FdView signals);

  const Options& options_;
  Shelf shelf_;
  std::vector<Change> batch_;  // as far as it has come
  Fd link_;
  Fd process_;
  pid_t pid_ = 0;
  bool said_ready_ = false;
  bool ended_ = false;  // as it says
  bool over_ = false;   // and its process has
  std::optional<Error> failed_;
  std::chrono::steady_clock::time_point started_;
  std::chrono::milliseconds pause_{0};
};

struct ForkedSupervisor {
  pid_t pid = 0;
  Fd link;  // the daemon's end
};
/// Forks a supervisor for the calling daemon. What is in `options` is used in the child.
/// Errors: io, exhausted.
[[nodiscard]] Result<ForkedSupervisor> fork_supervisor(const Supervisor::Options& options);

/// Both ends of a link. Errors: io.
struct LinkEnds {
  Fd supervisor;
  Fd daemon;
};
[[nodiscard]] Result<LinkEnds> make_link();

}  // namespace wc::daemon
