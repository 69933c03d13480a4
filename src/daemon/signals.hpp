// The signals that end a daemon, as a descriptor; what was before comes back with the end of this
// object. SIGPIPE is ignored meanwhile: stderr may be a pipe whose reader is gone.
#pragma once

#include <optional>
#include <string>

#include <signal.h>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace wc::daemon {

class [[nodiscard]] EndSignals {
 public:
  /// SIGTERM, SIGINT and SIGHUP are blocked from here on. Errors: io.
  [[nodiscard]] static Result<EndSignals> take();
  EndSignals(EndSignals&& other) noexcept;
  EndSignals& operator=(EndSignals&&) = delete;
  ~EndSignals();

  [[nodiscard]] FdView descriptor() const { return descriptor_; }
  /// The one that has come: "SIGTERM", with the pid of its sender.
  [[nodiscard]] std::optional<std::string> next();

 private:
  explicit EndSignals(Fd descriptor) : descriptor_(std::move(descriptor)) {}
  Fd descriptor_;  // empty: moved from
  sigset_t mask_before_{};
  struct sigaction pipe_before_{};
};

}  // namespace wc::daemon
