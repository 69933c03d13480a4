// Sessions, readers and accounts.
#include "catalog/catalog.hpp"

#include <algorithm>

#include "base/units.hpp"
#include "catalog/limits.hpp"
#include "catalog/tables.hpp"

namespace wc::catalog {

Catalog::Catalog() : tables_(std::make_unique<Tables>()) {}
Catalog::~Catalog() = default;

Result<> Catalog::session_opened(SessionId session) {
  Tables& t = *tables_;
  if (t.sessions.contains(session))
    return fail(Code::invalid_argument, "session {} is open already", std::to_underlying(session));
  if (t.sessions.size() >= kMaxSessions)
    return fail(Code::exhausted, "{} connections exist already", format_count(kMaxSessions));
  t.sessions[session].id = session;
  return {};
}

// Its waiting requests go first, so that it takes over none of its own loads.
void Catalog::session_closed(SessionId session, const Now& now) {
  Tables& t = *tables_;
  const auto at = t.sessions.find(session);
  if (at == t.sessions.end()) return;
  Session& closed = at->second;
  while (!closed.waits.empty()) t.end_wait(*closed.waits.back());
  while (!closed.loads.empty()) t.end_load(t.entries.at(closed.loads.front()), now);
  while (closed.leases != 0) t.end_lease(t.leases.first_of(closed), true, now);
  t.sessions.erase(session);
  t.make_room(now);
}

Result<Attached> Catalog::attach(SessionId session, const Selector& selector, const Now& now) {
  Tables& t = *tables_;
  Session* by = TRY(t.session(session));
  TRY(valid_selector(selector, false));
  const Place place = TRY(t.resolve_or_explain(selector));
  TRY(Tables::takes_leases(place, selector));
  if (by->leases >= kMaxLeasesOfSession)
    return fail(Code::exhausted, "this connection has {} leases already",
                format_count(kMaxLeasesOfSession));
  if (t.leases.size() >= kMaxLeases)
    return fail(Code::exhausted, "{} leases exist already", format_count(kMaxLeases));
  ++place.member().leases;
  ++place.set->leases;
  ++place.entry().leases;
  t.use(place.entry(), now);
  Attached out;
  out.lease = t.leases.add(*by, place, now.unix_ns);
  out.entry = t.info(place);
  return out;
}

Result<> Catalog::detach(SessionId session, LeaseId lease, const Now& now) {
  Tables& t = *tables_;
  const Lease* found = t.leases.find(lease);
  if (found == nullptr || found->session->id != session)
    return fail(Code::not_found, "this connection has no lease {}", std::to_underlying(lease));
  if (!std::exchange(found->place.entry().proven, true)) ++t.revision;
  t.end_lease(lease, false, now);
  t.make_room(now);
  return {};
}

Result<Rejected> Catalog::reject(SessionId session, LeaseId lease, Rejection rejection,
                                 const Now& now) {
  Tables& t = *tables_;
  const Lease* found = t.leases.find(lease);
  if (found == nullptr || found->session->id != session)
    return fail(Code::not_found, "this connection has no lease {}", std::to_underlying(lease));
  Rejected out;
  out.entry = t.info(found->place);
  const bool counts = rejection.corrupt &&
                      (rejection.trusted || rejection.uid == found->place.entry().publisher_uid);
  t.end_lease(lease, false, now);
  const auto at = t.entries.find(out.entry.id);
  if (counts && at != t.entries.end()) out.failed = t.fail_entry(at->second, rejection.why);
  t.make_room(now);
  return out;
}

Result<EntryInfo> Catalog::lookup(const Selector& selector) const {
  TRY(valid_selector(selector, false));
  const Place place = TRY(tables_->resolve_or_explain(selector));
  return tables_->info(place);
}

Result<> Catalog::set_budget(std::string_view device, std::uint64_t bytes, const Now& now,
                             std::string_view from) {
  const std::uint16_t at = TRY(tables_->make_device(device));
  tables_->devices[at].budget_bytes = bytes;
  tables_->devices[at].budget_from = from;
  ++tables_->revision;
  tables_->make_room(now);
  return {};
}

void Catalog::set_protection(std::chrono::nanoseconds after_death) {
  tables_->protection =
      std::clamp<std::chrono::nanoseconds>(after_death, std::chrono::nanoseconds(0), kMaxKeepAlive);
}

Result<> Catalog::released(EntryId entry, const Now& now) {
  Tables& t = *tables_;
  const auto at = t.releasing.find(entry);
  if (at == t.releasing.end())
    return fail(Code::not_found, "entry {} is not being released", std::to_underlying(entry));
  t.devices[at->second.device].releasing_bytes -= at->second.bytes;
  t.releasing.erase(at);
  t.make_room(now);
  return {};
}

std::vector<DeviceStatus> Catalog::devices() const { return tables_->devices; }
std::size_t Catalog::entry_count() const { return tables_->entries.size(); }
std::size_t Catalog::lease_count() const { return tables_->leases.size(); }
std::size_t Catalog::session_count() const { return tables_->sessions.size(); }

std::vector<Effect> Catalog::take_effects() { return std::exchange(tables_->effects, {}); }

}  // namespace wc::catalog
