// A load from its grant to its end: how far it is, and giving it up. Its memory is in room.cpp.
#include <algorithm>

#include "base/units.hpp"
#include "catalog/catalog.hpp"
#include "catalog/limits.hpp"
#include "catalog/tables.hpp"

namespace wc::catalog {

Result<Entry*> Tables::load_of(SessionId session_id, EntryId load) {
  Session* by = TRY(session(session_id));
  if (std::ranges::find(by->loads, load) != by->loads.end()) return &entries.at(load);
  if (std::ranges::find(by->cancelled, load) != by->cancelled.end())
    return fail(Code::cancelled, "load {} was cancelled: it was evicted", std::to_underlying(load));
  return fail(Code::not_found, "this connection has no load {}", std::to_underlying(load));
}

std::vector<Waiter*> Tables::unload(Entry& entry) {
  std::erase(sessions.at(entry.load->session).loads, entry.id);
  std::erase(entry.load->line->loads, &entry);
  loads.erase(entry.id);
  return std::move(entry.load->waiters);
}

void Tables::end_load(Entry& entry, const Now& now) {
  Line& line = *entry.load->line;
  if (entry.load->room != nullptr) {
    const Error ended{
        Code::cancelled,
        format("load {} ended while it waited for memory", std::to_underlying(entry.id)),
        {}};
    answer(*entry.load->room, Error(ended));
  }
  const std::vector<Waiter*> waiters = unload(entry);
  release(entry);
  tidy(line);
  take_over(waiters, now);
}

Result<> Catalog::progress(SessionId session, EntryId load, std::uint64_t done_bytes,
                           std::uint64_t total_bytes, const Now& now) {
  Tables& t = *tables_;
  Entry* loading = TRY(t.load_of(session, load));
  Entry& entry = *loading;
  if (total_bytes != 0) entry.total_bytes = total_bytes;
  if (entry.total_bytes != 0) done_bytes = std::min(done_bytes, entry.total_bytes);
  entry.done_bytes = done_bytes;
  entry.load->rate.report(now.steady, done_bytes);
  t.tell_all(entry, now.steady);
  return {};
}

Result<> Catalog::abandon(SessionId session, EntryId load, const Now& now) {
  Tables& t = *tables_;
  Session* by = TRY(t.session(session));
  if (std::erase(by->cancelled, load) != 0) return {};
  Entry* entry = TRY(t.load_of(session, load));
  t.end_load(*entry, now);
  t.make_room(now);
  return {};
}

}  // namespace wc::catalog
