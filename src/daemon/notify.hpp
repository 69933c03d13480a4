// The service manager's notification protocol (sd_notify(3)): datagrams of NAME=VALUE lines to the
// socket that $NOTIFY_SOCKET names, a path or, with `@`, an abstract address. Never blocks; where
// nobody listens, nothing happens.
#pragma once

#include <string>
#include <string_view>

#include "base/fd.hpp"

namespace wc::daemon {

class Notifier {
 public:
  Notifier() = default;  // tells nobody
  /// `address` as in $NOTIFY_SOCKET. An unusable one is logged and tells nobody.
  explicit Notifier(std::string_view address);
  /// From the environment, which loses the variable: children must not speak for the daemon.
  [[nodiscard]] static Notifier from_environment();

  void ready(std::string_view status) const;
  void stopping() const;
  void status(std::string_view text) const;

 private:
  void send(std::string_view text) const;
  std::string address_;  // as in sun_path: an abstract one begins with NUL
  Fd socket_;
};

}  // namespace wc::daemon
