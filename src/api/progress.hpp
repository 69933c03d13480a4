// A caller's progress function, as those who wait and those who read want to tell it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>

#include "weightcache/weightcache.h"

#include "client/progress.hpp"
#include "load/fill.hpp"

namespace wc::api {

/// One for each call of the ABI; must outlive what its functions are given to. Any thread; the
/// caller's function hears one thread at a time, ten times a second at most, and the end.
class ProgressTeller {
 public:
  ProgressTeller(wc_progress_function function, void* user) : function_(function), user_(user) {}
  ProgressTeller(const ProgressTeller&) = delete;
  ProgressTeller& operator=(const ProgressTeller&) = delete;

  /// For waiting behind another loader. Empty where nobody listens; with `always`, never.
  [[nodiscard]] client::ProgressFunction waiting(bool always = false);
  /// For reading files.
  void reading(const load::Progress& progress);
  /// Whether somebody else was waited for.
  [[nodiscard]] bool waited() const { return waited_; }

 private:
  void tell(wc_progress progress);

  using Clock = std::chrono::steady_clock;
  const wc_progress_function function_;
  void* const user_;
  const Clock::time_point start_ = Clock::now();
  std::mutex mutex_;  // of what follows, and of the caller's function
  Clock::time_point told_{};
  std::atomic<bool> waited_{false};
};

}  // namespace wc::api
