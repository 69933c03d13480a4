// A load from its grant to its end: what it reserves, how far it is, and giving it up.
#include <algorithm>

#include "base/units.hpp"
#include "catalog/catalog.hpp"
#include "catalog/limits.hpp"
#include "catalog/tables.hpp"

namespace wc::catalog {
namespace {

// Which names would make room: unleased, unpinned, the largest first.
std::string evictable(const Tables& tables, std::uint16_t device) {
  constexpr std::size_t kShown = 3;
  std::vector<const Entry*> found;
  for (const auto& [id, entry] : tables.entries) {
    if (!entry.load && entry.device == device && entry.leases == 0 && !entry.pinned)
      found.push_back(&entry);
  }
  if (found.empty()) return "; nothing can be evicted: all is leased, pinned or loading";
  std::ranges::sort(found, [](const Entry* a, const Entry* b) {
    return a->bytes != b->bytes ? a->bytes > b->bytes : a->id < b->id;
  });
  std::string text = "; could be evicted: ";
  for (std::size_t at = 0; at < found.size() && at < kShown; ++at) {
    const Set& set = *found[at]->places.front().set;
    text += format("{}\"{}\" ({})", at == 0 ? "" : ", ", *set.name, format_bytes(found[at]->bytes));
  }
  if (found.size() > kShown) text += format(" and {} more", found.size() - kShown);
  return text;
}

Failure no_room(const Tables& tables, std::uint16_t device, std::uint64_t bytes) {
  const DeviceStatus& status = tables.devices[device];
  std::string text =
      format("cannot reserve {} on \"{}\": {} of {} are free", format_bytes(bytes), status.device,
             format_bytes(status.free_bytes()), format_bytes(status.budget_bytes));
  if (status.releasing_bytes != 0)
    text += format(", {} are being given back", format_bytes(status.releasing_bytes));
  return fail(Code::exhausted, "{}{}", text, evictable(tables, device));
}

}  // namespace

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
  const std::vector<Waiter*> waiters = unload(entry);
  release(entry);
  tidy(line);
  take_over(waiters, now);
}

Result<Reservation> Catalog::reserve(SessionId session, EntryId load,
                                     std::span<const std::uint64_t> segment_bytes) {
  Tables& t = *tables_;
  Entry* loading = TRY(t.load_of(session, load));
  Entry& entry = *loading;
  if (entry.load->sealing)
    return fail(Code::busy, "load {} is being published", std::to_underlying(load));
  if (segment_bytes.empty() || segment_bytes.size() > kMaxSegments - entry.segments)
    return fail(Code::invalid_argument, "{} segments beside {}: an entry has 1 to {}",
                segment_bytes.size(), entry.segments, kMaxSegments);
  std::uint64_t bytes = 0;
  for (const std::uint64_t each : segment_bytes) {
    if (each == 0 || each > kMaxSegmentBytes)
      return fail(Code::invalid_argument, "a segment of {}: it has 1 B to {}", format_bytes(each),
                  format_bytes(kMaxSegmentBytes));
    bytes += each;
  }
  DeviceStatus& device = t.devices[entry.device];
  if (bytes > device.free_bytes()) return no_room(t, entry.device, bytes);
  Reservation made;
  made.first_segment = entry.segments;
  made.segments = static_cast<std::uint16_t>(segment_bytes.size());
  made.bytes = bytes;
  device.loading_bytes += bytes;
  entry.bytes += bytes;
  entry.segments = static_cast<std::uint16_t>(entry.segments + made.segments);
  made.total_bytes = entry.bytes;
  return made;
}

void Catalog::reserve_failed(EntryId load, const Reservation& reservation) {
  Tables& t = *tables_;
  const auto at = t.loads.find(load);
  if (at == t.loads.end()) return;
  Entry& entry = *at->second;
  if (reservation.segments > entry.segments || reservation.bytes > entry.bytes) return;
  entry.segments = static_cast<std::uint16_t>(entry.segments - reservation.segments);
  entry.bytes -= reservation.bytes;
  t.devices[entry.device].loading_bytes -= reservation.bytes;
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
  return {};
}

}  // namespace wc::catalog
