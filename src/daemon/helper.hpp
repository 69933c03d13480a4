// The helper: a process forked before the daemon has anything, which does what may take long or be
// killed for: reserving memory, sealing and checking, dropping the last holder of memory. It forks
// a child for each job, so that one that is killed takes nothing else with it; the child answers
// the daemon itself, the helper only for a child that died.
//
// It ends when the daemon does (end of the socket, or the daemon's death), and its children with
// it. Single-threaded, as is whoever forks it.
#pragma once

#include <string>
#include <utility>

#include <sys/types.h>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace wc::daemon {

struct HelperProcess {
  HelperProcess() = default;
  HelperProcess(pid_t child, Fd pidfd, Fd jobs)
      : pid(child), process(std::move(pidfd)), socket(std::move(jobs)) {}
  HelperProcess(HelperProcess&&) = default;
  HelperProcess& operator=(HelperProcess&& other) noexcept {
    if (this != &other) {
      end();
      pid = other.pid;
      process = std::move(other.process);
      socket = std::move(other.socket);
      settled = std::move(other.settled);
    }
    return *this;
  }
  HelperProcess(const HelperProcess&) = delete;
  HelperProcess& operator=(const HelperProcess&) = delete;
  ~HelperProcess() { end(); }

  /// Ends the process, which may be dead already, and waits for it. How it ended: "signal 9"; empty
  /// where there is none.
  std::string end();

  pid_t pid = 0;
  Fd process;  // pidfd: readable when it has ended
  Fd socket;   // jobs go out, answers come in; non-blocking
  Fd settled;  // a pipe that ends when it has closed all that it had of the daemon's
};

/// Waits for that end: before it, the daemon's lock outlives a daemon that is killed.
void wait_until_settled(Fd settled);

/// Every other descriptor of the caller but the standard three is closed in the child.
/// Errors: io, exhausted (fork).
[[nodiscard]] Result<HelperProcess> fork_helper();

}  // namespace wc::daemon
