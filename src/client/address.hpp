// Which sockets a client tries, and one of them as a place to connect to: its directory is opened
// first, so that what was checked is what is used, and so that long paths work (a socket's address
// holds 107 bytes; /proc/self/fd/N/NAME is short). Plain functions; nothing is cached.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <sys/un.h>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace wc::client {

/// What of the process's environment decides; tests make their own.
struct Environment {
  std::string socket;       // $WEIGHTCACHE_SOCKET
  std::string runtime_dir;  // $XDG_RUNTIME_DIR
  std::string trust;        // $WEIGHTCACHE_TRUST
  std::uint32_t uid = 0;
  std::string system_socket = "/run/weightcache/socket";
};
[[nodiscard]] Environment process_environment();

/// Of a text like "1000,1001". Errors: invalid_argument (naming what is no number).
[[nodiscard]] Result<std::vector<std::uint32_t>> uids_in(const std::string& text);

/// In the order in which they are tried: `asked` alone, else $WEIGHTCACHE_SOCKET alone, else the
/// user's ($XDG_RUNTIME_DIR/weightcache/socket, or /tmp/weightcache-UID/socket), then the system's.
[[nodiscard]] std::vector<std::string> sockets_to_try(const std::string& asked,
                                                      const Environment& environment);

/// Where a daemon of this user listens: `asked`, else $WEIGHTCACHE_SOCKET, else root's in /run, any
/// other's as above.
[[nodiscard]] std::string socket_to_listen_on(const std::string& asked,
                                              const Environment& environment);

class SocketPlace {
 public:
  /// Opens the directory of a socket and checks it: a directory and no symbolic link, owned by
  /// root, by the user himself or by one of `trusted_uids`, writable by nobody but its owner.
  /// Errors: denied (saying which rule), disconnected (no such directory), invalid_argument (an
  /// empty path or name, a name of more than 80 bytes).
  [[nodiscard]] static Result<SocketPlace> open(const std::string& path, std::uint32_t uid,
                                                std::span<const std::uint32_t> trusted_uids);

  /// Valid while this object lives.
  [[nodiscard]] const sockaddr_un& address() const { return address_; }

 private:
  SocketPlace(Fd directory, const sockaddr_un& address)
      : directory_(std::move(directory)), address_(address) {}
  Fd directory_;
  sockaddr_un address_;
};

/// Whether a uid is root's, the user's own, or one of those that are trusted.
[[nodiscard]] bool is_trusted(std::uint32_t uid, std::uint32_t own_uid,
                              std::span<const std::uint32_t> trusted_uids);

}  // namespace wc::client
