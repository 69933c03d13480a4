// Room for a load: accounted if it is there, made of what nobody uses if that is enough, else
// waited for. Memory that is being given back counts as free when it is; what was evicted for one
// request is kept for it until then.
#include <algorithm>
#include <set>

#include "base/units.hpp"
#include "catalog/catalog.hpp"
#include "catalog/limits.hpp"
#include "catalog/tables.hpp"

namespace wc::catalog {
namespace {

/// What can only go together: an entry, the sets that it is in, their members, and so on.
struct Group {
  std::vector<Set*> sets;
  std::vector<Entry*> entries;
  EntryId first = EntryId::none;  // the oldest of them
  Time used{};
  std::uint64_t bytes = 0;  // on the device that needs room
};

Group group_of(Entry& first, std::uint16_t device) {
  Group group;
  std::set<const Entry*> seen = {&first};
  std::set<const Set*> taken;
  group.entries.push_back(&first);
  group.first = first.id;
  for (std::size_t at = 0; at < group.entries.size(); ++at) {  // grows meanwhile
    Entry& entry = *group.entries[at];
    group.used = std::max(group.used, entry.used);
    group.first = std::min(group.first, entry.id);
    if (entry.device == device) group.bytes += entry.bytes;
    for (const Place& place : entry.places) {
      if (place.set->status == Set::Status::gone || !taken.insert(place.set).second) continue;
      group.sets.push_back(place.set);
      for (const Member& member : place.set->members) {
        if (member.entry != nullptr && seen.insert(member.entry).second)
          group.entries.push_back(member.entry);
      }
    }
  }
  std::ranges::sort(group.sets, {}, &Set::id);
  return group;
}

// What keeps the entry from making room for a load of the line, for people; nothing: it may go.
std::string keeper_of(const Entry& entry, const Line& line, const Now& now) {
  if (entry.load) return entry.load->sealing ? "being published" : "being loaded";
  if (entry.leases == 1) return "1 lease";
  if (entry.leases != 0) return format("{} leases", entry.leases);
  if (entry.pinned) return "pinned";
  if (!entry.failure.empty()) return {};
  if (entry.keep_alive == kForever) return "kept alive for ever";
  if (const Time until = kept_until(entry); until > now.steady) {
    const bool died = entry.guarded == until;
    return format("kept for {} more, since {}", format_duration(until - now.steady),
                  died ? "a reader of it died" : "it was used");
  }
  for (const Place& place : entry.places) {
    if (place.set->status == Set::Status::pending) return "its set lacks ranks";
    if (place.set->line == &line) return "what this load replaces";
  }
  return {};
}

bool may_go(const Group& group, const Line& line, const Now& now) {
  return std::ranges::all_of(
      group.entries, [&](const Entry* entry) { return keeper_of(*entry, line, now).empty(); });
}

// Every group with memory on the device that may go, the least recently used first.
std::vector<Group> evictable(Tables& tables, const RoomWait& wanted, const Now& now) {
  std::vector<Group> groups;
  std::set<const Entry*> seen;
  for (auto& [id, entry] : tables.entries) {
    if (entry.load || entry.device != wanted.load->device || seen.contains(&entry)) continue;
    Group group = group_of(entry, entry.device);
    seen.insert(group.entries.begin(), group.entries.end());
    if (may_go(group, *wanted.load->load->line, now)) groups.push_back(std::move(group));
  }
  std::ranges::sort(groups, [](const Group& a, const Group& b) {
    return a.used != b.used ? a.used < b.used : a.first < b.first;
  });
  return groups;
}

// The least recently used ones that are enough, without those that the others make needless.
// Nothing: all together are not enough.
std::optional<std::vector<Group>> victims(std::vector<Group> groups, std::uint64_t missing_bytes) {
  std::uint64_t sum = 0;
  std::size_t count = 0;
  while (count < groups.size() && sum < missing_bytes) sum += groups[count++].bytes;
  if (sum < missing_bytes) return std::nullopt;
  groups.resize(count);
  for (auto at = groups.end(); at != groups.begin();) {
    --at;
    if (sum - at->bytes < missing_bytes) continue;
    sum -= at->bytes;
    at = groups.erase(at);
  }
  return groups;
}

std::uint64_t promised_bytes(const Tables& tables, const RoomWait& wanted) {
  std::uint64_t sum = 0;
  for (const Waiter* waiter : tables.waits.for_room()) {
    const RoomWait& other = std::get<RoomWait>(waiter->what);
    if (&other != &wanted && other.promised && other.load->device == wanted.load->device)
      sum += other.bytes;
  }
  return sum;
}

// Not yet free, and not anybody's: how much is missing to it.
std::uint64_t missing_bytes(const Tables& tables, const RoomWait& wanted) {
  const std::uint64_t coming = tables.devices[wanted.load->device].coming_bytes();
  const std::uint64_t others = promised_bytes(tables, wanted);
  const std::uint64_t mine = coming - std::min(coming, others);
  return wanted.bytes - std::min(wanted.bytes, mine);
}

Reservation account(Tables& tables, RoomWait& wanted) {
  Entry& entry = *wanted.load;
  Reservation made;
  made.first_segment = entry.segments;
  made.segments = static_cast<std::uint16_t>(wanted.segment_bytes.size());
  made.bytes = wanted.bytes;
  made.evicted = std::move(wanted.evicted);
  tables.devices[entry.device].loading_bytes += wanted.bytes;
  entry.bytes += wanted.bytes;
  entry.segments = static_cast<std::uint16_t>(entry.segments + made.segments);
  made.total_bytes = entry.bytes;
  return made;
}

std::string listed(std::vector<std::pair<std::uint64_t, std::string>> holders) {
  constexpr std::size_t kShown = 4;
  std::ranges::sort(holders, [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  std::string text;
  for (std::size_t at = 0; at < holders.size() && at < kShown; ++at) {
    text += format("{}{}", at == 0 ? "" : "; ", holders[at].second);
  }
  if (holders.size() > kShown) text += format("; and {} more", holders.size() - kShown);
  return text;
}

}  // namespace

Time kept_until(const Entry& entry) {
  const Time alive =
      entry.keep_alive == kForever
          ? Time::max()
          : entry.used + std::chrono::duration_cast<Time::duration>(entry.keep_alive);
  return std::max(alive, entry.guarded);
}

std::chrono::nanoseconds valid_keep_alive(std::chrono::nanoseconds time) {
  return time > kMaxKeepAlive ? kForever : std::max(time, std::chrono::nanoseconds(0));
}

Error Tables::no_room(const RoomWait& wanted, const Now& now) const {
  const Entry& load = *wanted.load;
  const DeviceStatus& status = devices[load.device];
  std::string text =
      format("cannot reserve {} on \"{}\": {} of {} are free", format_bytes(wanted.bytes),
             status.device, format_bytes(status.free_bytes()), format_bytes(status.limit_bytes()));
  if (status.releasing_bytes != 0)
    text += format(", {} are being given back", format_bytes(status.releasing_bytes));
  if (const std::uint64_t others = promised_bytes(*this, wanted); others != 0)
    text += format(", {} are promised to loads that wait", format_bytes(others));
  std::vector<std::pair<std::uint64_t, std::string>> holders;
  std::vector<std::pair<std::uint64_t, std::string>> idle;
  std::uint64_t idle_bytes = 0;
  for (const auto& [id, entry] : entries) {
    if (entry.device != load.device || entry.bytes == 0) continue;
    std::string why = &entry == &load ? "this load" : keeper_of(entry, *load.load->line, now);
    const Text& name = entry.load ? entry.load->line->name->text : entry.places.front().set->name;
    if (why.empty()) {
      Group group = group_of(*entry.places.front().set->members[entry.places.front().rank].entry,
                             entry.device);
      if (may_go(group, *load.load->line, now)) {
        idle_bytes += entry.bytes;
        idle.emplace_back(entry.bytes, format("\"{}\" ({})", *name, format_bytes(entry.bytes)));
        continue;
      }
      why = "of a set or content that is in use";
    }
    holders.emplace_back(entry.bytes,
                         format("\"{}\" ({}, {})", *name, format_bytes(entry.bytes), why));
  }
  text += idle.empty() ? "; nothing can be evicted"
                       : format("; evicting all that nobody uses would free {}: {}",
                                format_bytes(idle_bytes), listed(std::move(idle)));
  if (!holders.empty()) text += format("; held by {}", listed(std::move(holders)));
  return Error{Code::exhausted, std::move(text), {}};
}

std::optional<Reservation> Tables::find_room(RoomWait& wanted, const Now& now) {
  const std::uint16_t device = wanted.load->device;
  if (!wanted.promised) {
    if (const std::uint64_t missing = missing_bytes(*this, wanted); missing != 0) {
      auto chosen = victims(evictable(*this, wanted, now), missing);
      if (!chosen) return std::nullopt;
      for (const Group& group : *chosen) {
        const Set& set = *group.sets.front();
        wanted.evicted.push_back({*set.name, set.generation, group.bytes});
      }
      effects.emplace_back(EvictedForRoom{wanted.load->id, *wanted.load->load->line->name->text,
                                          devices[device].device, wanted.bytes, wanted.evicted});
      for (const Group& group : *chosen) {
        for (Set* set : group.sets) take_away(*set);
      }
      wake();
    }
    wanted.promised = true;
  }
  if (wanted.bytes > devices[device].free_bytes()) return std::nullopt;
  return account(*this, wanted);
}

void Tables::make_room(const Now& now) {
  if (waits.for_room().empty()) return;
  room_looked = now.steady;
  // Those whose room is coming first, so that nobody takes it from them.
  for (const bool promised : {true, false}) {
    const std::vector<Waiter*> waiting = waits.for_room();
    for (Waiter* waiter : waiting) {
      RoomWait& wanted = std::get<RoomWait>(waiter->what);
      if (wanted.promised != promised) continue;
      if (auto made = find_room(wanted, now)) answer(*waiter, std::move(*made));
    }
  }
}

std::optional<Time> Tables::next_protection_end() const {
  std::optional<Time> next;
  for (const Waiter* waiter : waits.for_room()) {
    const RoomWait& wanted = std::get<RoomWait>(waiter->what);
    if (wanted.promised) continue;
    for (const auto& [id, entry] : entries) {
      if (entry.device != wanted.load->device || entry.load || entry.leases != 0) continue;
      const Time end = kept_until(entry);
      if (end > room_looked && end != Time::max() && (!next || end < *next)) next = end;
    }
  }
  return next;
}

Result<std::optional<Reservation>> Catalog::reserve(SessionId session, RequestId request,
                                                    ReserveRequest wanted, const Now& now) {
  Tables& t = *tables_;
  Session* by = TRY(t.session(session));
  Entry* loading = TRY(t.load_of(session, wanted.load));
  Entry& entry = *loading;
  if (entry.load->sealing)
    return fail(Code::busy, "load {} is being published", std::to_underlying(entry.id));
  if (entry.load->room != nullptr)
    return fail(Code::busy, "load {} waits for memory already", std::to_underlying(entry.id));
  if (wanted.segment_bytes.empty() || wanted.segment_bytes.size() > kMaxSegments - entry.segments)
    return fail(Code::invalid_argument, "{} segments beside {}: an entry has 1 to {}",
                wanted.segment_bytes.size(), entry.segments, kMaxSegments);
  RoomWait room;
  room.load = &entry;
  for (const std::uint64_t each : wanted.segment_bytes) {
    if (each == 0 || each > kMaxSegmentBytes)
      return fail(Code::invalid_argument, "a segment of {}: it has 1 B to {}", format_bytes(each),
                  format_bytes(kMaxSegmentBytes));
    room.bytes += each;
  }
  room.segment_bytes = std::move(wanted.segment_bytes);
  const bool at_once =
      missing_bytes(t, room) == 0 && room.bytes <= t.devices[entry.device].free_bytes();
  if (!at_once) TRY(t.waits.room(*by, request));
  if (auto made = t.find_room(room, now)) return made;
  // What would never fit is not waited for.
  const std::uint64_t limit = t.devices[entry.device].limit_bytes();
  const bool hopeless = limit != 0 && entry.bytes + room.bytes > limit;
  if (!room.promised && (!wanted.room_deadline || hopeless)) return Failure(t.no_room(room, now));
  Waiter waiter;
  waiter.session = session;
  waiter.request = request;
  waiter.since = now.steady;
  waiter.deadline = now.steady + kMaxWait;
  if (!room.promised) waiter.deadline = std::min(waiter.deadline, *wanted.room_deadline);
  waiter.what = std::move(room);
  entry.load->room = &t.waits.add(*by, std::move(waiter));
  t.room_looked = now.steady;
  return std::nullopt;
}

void Catalog::reserve_failed(EntryId load, const Reservation& reservation, const Now& now) {
  Tables& t = *tables_;
  const auto at = t.loads.find(load);
  if (at == t.loads.end()) return;
  Entry& entry = *at->second;
  if (reservation.segments > entry.segments || reservation.bytes > entry.bytes) return;
  entry.segments = static_cast<std::uint16_t>(entry.segments - reservation.segments);
  entry.bytes -= reservation.bytes;
  t.devices[entry.device].loading_bytes -= reservation.bytes;
  t.make_room(now);
}

}  // namespace wc::catalog
