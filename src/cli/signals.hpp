// Ctrl-C and its kin. The first SIGINT or SIGTERM cancels the library's call where the verb said
// that it has one that can be cancelled; anywhere else, and the second time, the program ends at
// once, and the daemon takes back what the dead connection held. One per process, made by main.
#pragma once

#include "base/result.hpp"
#include "cli/library.hpp"

namespace wc::cli {

class Signals {
 public:
  /// Installs the handlers. With `json` an end at once also prints the error's document.
  /// Errors: io, and what wc_cancellation_new gives.
  static Result<Signals> install(bool json);

  /// What to hand to the library. From this call on the first signal cancels.
  [[nodiscard]] wc_cancellation* cancellation();
  /// Blocks until a signal has come; one that came earlier counts.
  [[nodiscard]] Result<> wait();

  Signals(Signals&&) noexcept = default;
  Signals& operator=(Signals&&) noexcept = default;
  ~Signals() = default;

 private:
  explicit Signals(Cancellation cancellation) : cancellation_(std::move(cancellation)) {}

  Cancellation cancellation_;
};

}  // namespace wc::cli
