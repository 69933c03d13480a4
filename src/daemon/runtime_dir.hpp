// The directory that a daemon lives in: its lock, for life, and its socket. Whoever holds a
// RuntimeDir is the only daemon there; nothing is bound, replaced or removed before the lock is
// held. Modes do not depend on the umask.
//
// The lock is an open-file-description lock: it ends with the last descriptor of it, so no child
// may keep one. It refuses a directory that somebody else could write.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include <sys/types.h>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace wc::daemon {

class [[nodiscard]] RuntimeDir {
 public:
  struct Options {
    std::filesystem::path socket;  // its parent is the directory, which is this daemon's alone
    std::optional<gid_t> group;    // may reach the socket too: 0750 and 0660; else 0700 and 0600
    bool everybody = false;        // may reach it, where the daemon has a list: 0711 and 0666
  };

  /// Makes the directory where it is missing (not its parents), checks it, takes the lock.
  /// Errors: denied (not this user's, writable by others, a symbolic link), busy (a daemon lives
  /// there: its pid), invalid_argument (no directory in the path), io.
  [[nodiscard]] static Result<RuntimeDir> open(const Options& options);

  /// A listening socket in the directory. The socket of a dead daemon is replaced; what is no
  /// socket is not (`already_exists`). Errors: io. Not to be called while another thread of this
  /// process makes files: the umask is the process's.
  [[nodiscard]] Result<Fd> listen(int backlog);

  /// Writes the serving process's pid into the lock's file, for people.
  void tell_pid(pid_t pid) const;
  /// What every process that may serve here later keeps open.
  [[nodiscard]] std::vector<FdView> descriptors() const { return {directory_, lock_}; }

  /// Removes the socket, so that clients see at once that nobody is there.
  void remove_socket();

  [[nodiscard]] const std::filesystem::path& socket() const { return options_.socket; }

 private:
  RuntimeDir(Options options, Fd directory, Fd lock)
      : options_(std::move(options)), directory_(std::move(directory)), lock_(std::move(lock)) {}

  Options options_;
  Fd directory_;
  Fd lock_;
};

}  // namespace wc::daemon
