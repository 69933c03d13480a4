// Ends calls from another thread or from a signal handler. Once cancelled, it stays so. Shared by
// any number of calls; it must outlive each of them.
#pragma once

#include <atomic>
#include <memory>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace wc::client {

class Cancellation {
 public:
  /// Errors: io (no descriptor to be had).
  [[nodiscard]] static Result<std::unique_ptr<Cancellation>> create();
  /// Over an eventfd that does not block.
  explicit Cancellation(Fd event) : event_(std::move(event)) {}

  /// Async-signal-safe.
  void cancel() noexcept;
  [[nodiscard]] bool is_cancelled() const noexcept { return cancelled_.load(); }
  /// For those who look at it between two pieces of work.
  [[nodiscard]] const std::atomic<bool>& flag() const noexcept { return cancelled_; }
  /// Readable from the moment of cancelling, for poll().
  [[nodiscard]] FdView event() const { return event_; }

 private:
  std::atomic<bool> cancelled_{false};
  static_assert(std::atomic<bool>::is_always_lock_free);
  Fd event_;
};

}  // namespace wc::client
