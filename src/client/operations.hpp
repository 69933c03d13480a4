// What an operator asks for, one request each; lists come whole, whatever the number of their
// pages. Errors are the daemon's, and those of Channel::exchange. Any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "client/connection.hpp"
#include "client/progress.hpp"
#include "wire/codec.hpp"

namespace wc::client {

/// Every entry that the selector matches; a default one matches all.
[[nodiscard]] Result<std::vector<wire::fb::EntryInfoT>> list_entries(
    Connection& connection, const wire::fb::SelectorT& selector);
[[nodiscard]] Result<std::vector<wire::fb::LeaseInfoT>> list_leases(
    Connection& connection, const wire::fb::SelectorT& selector);

[[nodiscard]] Result<wire::fb::StatusReportT> status(Connection& connection);

/// The one entry that it selects, published or not. Errors: not_found, invalid_argument (several).
[[nodiscard]] Result<wire::fb::EntryInfoT> look_up(Connection& connection,
                                                   const wire::fb::SelectorT& selector);

struct WaitOptions {
  std::chrono::nanoseconds limit = kNoLimit;
  ProgressFunction on_progress = {};
  const Cancellation* cancellation = nullptr;
};
/// Until it is published. Errors: timed_out, saying what is missing and how far it is.
[[nodiscard]] Result<wire::fb::EntryInfoT> wait_for_entry(Connection& connection,
                                                          const wire::fb::SelectorT& selector,
                                                          const WaitOptions& options);

/// Errors: not_found, busy (pinned or loading, without `force`).
[[nodiscard]] Result<wire::fb::EvictedT> evict(Connection& connection,
                                               const wire::fb::SelectorT& selector, bool force);
[[nodiscard]] Result<wire::fb::EntryInfoT> pin(Connection& connection,
                                               const wire::fb::SelectorT& selector, bool pinned);
/// Refuses new leases until none is left. Errors: timed_out (it stays draining).
[[nodiscard]] Result<wire::fb::EntryInfoT> drain(Connection& connection,
                                                 const wire::fb::SelectorT& selector,
                                                 const WaitOptions& options);
[[nodiscard]] Result<wire::fb::EntryInfoT> end_drain(Connection& connection,
                                                     const wire::fb::SelectorT& selector);

/// Ends the daemon: keeps the memory where something keeps it, or gives it back (`drop`).
[[nodiscard]] Result<wire::fb::StoppingT> stop(Connection& connection, bool drop);

}  // namespace wc::client
