#include "client/operations.hpp"

#include <iterator>
#include <utility>

namespace wc::client {
namespace {

using namespace wire::fb;

template <typename RequestT>
RequestT about(const SelectorT& selector) {
  RequestT request;
  request.selector = std::make_unique<SelectorT>(selector);
  return request;
}

CallOptions patient(const WaitOptions& options) {
  return {.timeout = beyond(options.limit),
          .cancellation = options.cancellation,
          .on_event = events_to(options.on_progress)};
}

Result<EntryInfoT> entry_of(Result<EntryT> reply) {
  const auto found = TRY(std::move(reply));
  if (found.entry == nullptr) return fail(Code::corrupt, "the daemon answered with no entry");
  return *found.entry;
}

// Pages until there is no next one. Each must lead further, so that it ends.
template <typename RowT, typename PageT, typename RequestT, typename RowsOf>
Result<std::vector<RowT>> all_pages(Connection& connection, const SelectorT& selector,
                                    RowsOf rows_of) {
  auto request = about<RequestT>(selector);
  std::vector<RowT> rows;
  for (;;) {
    auto page = TRY(connection.call<PageT>(request));
    for (auto& row : rows_of(page)) rows.push_back(std::move(*row));
    if (page.next == 0) return rows;
    if (page.next <= request.after)
      return fail(Code::corrupt, "page {} of a list leads back to {}", request.after, page.next);
    request.after = page.next;
  }
}

}  // namespace

Result<std::vector<EntryInfoT>> list_entries(Connection& connection, const SelectorT& selector) {
  return all_pages<EntryInfoT, EntriesT, ListT>(
      connection, selector, [](EntriesT& page) -> auto& { return page.entries; });
}

Result<std::vector<LeaseInfoT>> list_leases(Connection& connection, const SelectorT& selector) {
  return all_pages<LeaseInfoT, LeaseListT, LeasesT>(
      connection, selector, [](LeaseListT& page) -> auto& { return page.leases; });
}

Result<StatusReportT> status(Connection& connection) {
  return connection.call<StatusReportT>(StatusT{});
}

Result<EntryInfoT> look_up(Connection& connection, const SelectorT& selector) {
  return entry_of(connection.call<EntryT>(about<LookupT>(selector)));
}

Result<EntryInfoT> wait_for_entry(Connection& connection, const SelectorT& selector,
                                  const WaitOptions& options) {
  auto request = about<WaitT>(selector);
  request.timeout_ms = wire_timeout(options.limit);
  return entry_of(connection.call<EntryT>(request, patient(options)));
}

Result<EvictedT> evict(Connection& connection, const SelectorT& selector, bool force) {
  auto request = about<EvictT>(selector);
  request.force = force;
  return connection.call<EvictedT>(request);
}

Result<EntryInfoT> pin(Connection& connection, const SelectorT& selector, bool pinned) {
  auto request = about<PinT>(selector);
  request.pinned = pinned;
  return entry_of(connection.call<EntryT>(request));
}

Result<EntryInfoT> drain(Connection& connection, const SelectorT& selector,
                         const WaitOptions& options) {
  auto request = about<DrainT>(selector);
  request.timeout_ms = wire_timeout(options.limit);
  return entry_of(connection.call<EntryT>(request, patient(options)));
}

Result<EntryInfoT> end_drain(Connection& connection, const SelectorT& selector) {
  auto request = about<DrainT>(selector);
  request.undo = true;
  return entry_of(connection.call<EntryT>(request));
}

Result<StoppingT> stop(Connection& connection, bool drop) {
  StopT request;
  request.drop = drop;
  return connection.call<StoppingT>(request);
}

}  // namespace wc::client
