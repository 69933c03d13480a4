// The catalog's entries: listed, and waited for.
#include <utility>

#include "api/convert.hpp"
#include "api/guard.hpp"
#include "api/handles.hpp"
#include "api/progress.hpp"
#include "api/selector.hpp"
#include "api/structs.hpp"
#include "base/units.hpp"
#include "client/operations.hpp"

namespace wc::api {
namespace {

using Entry = wire::fb::EntryInfoT;

Result<Entry> look_up(wc_connection& connection, const Wanted& wanted) {
  return with_selector(
      wanted, [&](const auto& selector) { return client::look_up(*connection.session, selector); });
}

// By its path, where no entry has the name: a wait would never say so.
Result<Entry> wait_for(wc_connection& connection, const Wanted& wanted,
                       const wc_wait_options& options) {
  const auto found = look_up(connection, wanted);
  if (options.wait_ns == 0) return found;
  if (found && found->state == wire::fb::State::published) return found;
  const bool missing = !found && found.error().code == Code::not_found;
  const auto path = missing ? as_path(wanted) : std::nullopt;

  ProgressTeller progress(options.progress, options.user);
  client::WaitOptions waiting;
  waiting.limit = duration_of(options.wait_ns);
  waiting.on_progress = progress.waiting();
  waiting.cancellation = inner(options.cancellation);
  const auto& selector = path ? path->selector : wanted.selector;
  return client::wait_for_entry(*connection.session, selector, waiting);
}

}  // namespace
}  // namespace wc::api

using wc::Result;
using wc::api::guarded;
using wc::api::required;

extern "C" {

int wc_list(wc_connection* connection, const wc_selector* selector, wc_entry_list** out) {
  return guarded([&]() -> Result<> {
    TRY(required(out, "out"));
    *out = nullptr;
    TRY(required(connection, "connection"));
    const auto wanted = TRY(wc::api::wanted_or_all(selector, *connection->devices));
    auto entries = TRY(wc::client::list_entries(*connection->session, wanted.selector));
    if (const auto path = wc::api::as_path(wanted); entries.empty() && path)
      entries = TRY(wc::client::list_entries(*connection->session, path->selector));
    *out = new wc_entry_list{std::move(entries)};
    return {};
  });
}

size_t wc_entry_list_count(const wc_entry_list* list) {
  return list == nullptr ? 0 : list->entries.size();
}

int wc_entry_list_at(const wc_entry_list* list, size_t index, wc_entry_info* out) {
  return guarded([&]() -> Result<> {
    TRY(required(list, "list"));
    if (index >= list->entries.size())
      return wc::fail(wc::Code::invalid_argument, "there is no entry {}: the list has {}",
                      wc::format_count(index), wc::format_count(list->entries.size()));
    return wc::api::give_struct(out, wc::api::view_of(list->entries[index]), "wc_entry_info");
  });
}

void wc_entry_list_free(wc_entry_list* list) { delete list; }

int wc_wait(wc_connection* connection, const wc_selector* selector, const wc_wait_options* options,
            wc_entry_list** out) {
  return guarded([&]() -> Result<> {
    TRY(required(out, "out"));
    *out = nullptr;
    TRY(required(connection, "connection"));
    const auto known = TRY(wc::api::take_struct_or_default(options, "wc_wait_options"));
    const auto wanted = TRY(wc::api::wanted_of(selector, *connection->devices));
    auto entry = TRY(wc::api::wait_for(*connection, wanted, known));
    auto made = std::make_unique<wc_entry_list>();
    made->entries.push_back(std::move(entry));
    *out = made.release();
    return {};
  });
}

}  // extern "C"
