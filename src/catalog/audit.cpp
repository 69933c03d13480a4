// What "the tables are consistent" means, as code: each reference has its other end, each count is
// the sum of what it counts, and nothing is kept that nobody holds.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "catalog/catalog.hpp"
#include "catalog/tables.hpp"

namespace wc::catalog {
namespace {

// NOLINTNEXTLINE(cppcoreguidelines-macro-usage): the broken rule is its own message.
#define MUST(...) \
  if (!(__VA_ARGS__)) return fail(Code::internal, "line {}: {}", __LINE__, #__VA_ARGS__)

template <typename Range, typename Value>
bool has(const Range& range, const Value& value) {
  return std::ranges::find(range, value) != range.end();
}

Result<> audit_set(const Tables& t, const Set& set) {
  std::uint32_t leases = 0;
  std::uint32_t present = 0;
  for (std::uint32_t rank = 0; rank < set.world(); ++rank) {
    const Member& member = set.members[rank];
    leases += member.leases;
    if (member.entry == nullptr) {
      MUST(member.leases == 0);
      continue;
    }
    ++present;
    MUST(t.entries.contains(member.entry->id));
    MUST(std::ranges::any_of(member.entry->places, [&](const Place& place) {
      return place.set == &set && place.rank == rank;
    }));
    if (set.status == Set::Status::gone) MUST(member.leases != 0);
  }
  MUST(leases == set.leases);
  MUST(present != 0);
  MUST((set.status == Set::Status::gone) == (set.line == nullptr));
  MUST((set.status == Set::Status::pending) == (set.generation == 0) ||
       (set.status == Set::Status::gone));
  if (set.attachable()) MUST(present == set.world());
  if (set.status == Set::Status::pending) MUST(present < set.world() && set.leases == 0);
  if (set.status == Set::Status::pending) MUST(set.line->pending == &set);
  if (set.status == Set::Status::current) MUST(set.line->current == &set);
  if (set.status != Set::Status::old) return {};
  MUST(has(set.line->old, &set));
  const bool pinned = std::ranges::any_of(set.members, [](const Member& m) {
    return m.entry->pinned && std::ranges::none_of(m.entry->places, [](const Place& place) {
             return place.set->status == Set::Status::current;
           });
  });
  MUST(set.leases != 0 || pinned);
  return {};
}

Result<> audit_load(const Tables& t, const Entry& entry) {
  const Load& load = *entry.load;
  MUST(entry.found && entry.places.empty() && entry.leases == 0);
  MUST(!entry.draining && !entry.pinned);
  MUST(t.loads.contains(entry.id));
  MUST(t.sessions.contains(load.session));
  MUST(has(t.sessions.at(load.session).loads, entry.id));
  MUST(load.line->load_of(entry.rank) == &entry);
  MUST(std::ranges::count(load.line->loads, entry.rank, &Entry::rank) == 1);
  for (const Waiter* waiter : load.waiters) {
    const auto* wait = std::get_if<BeginWait>(&waiter->what);
    MUST(wait != nullptr && wait->behind == &entry);
  }
  return {};
}

Result<> audit_entry(const Tables& t, const Entry& entry) {
  std::uint32_t leases = 0;
  bool named = entry.load != nullptr;
  for (const Place& place : entry.places) {
    MUST(t.sets.contains(place.set->id) && place.member().entry == &entry);
    leases += place.member().leases;
    named = named || place.set->status != Set::Status::gone;
  }
  MUST(leases == entry.leases);
  MUST(named == entry.found);
  MUST(entry.segments != 0 || entry.bytes == 0);
  MUST(!t.releasing.contains(entry.id));
  const auto [begin, end] = t.content.with(entry.fingerprint, entry.device);
  MUST(std::count_if(begin, end, [&](const auto& item) { return item.second == &entry; }) ==
       (entry.found && !entry.fingerprint.empty() ? 1 : 0));
  MUST(entry.found || entry.aliases.empty());
  for (const std::string* alias : entry.aliases) MUST(has(t.content.known_by(*alias), &entry));
  MUST(entry.drains.empty() || entry.leases != 0);
  if (entry.load) return audit_load(t, entry);
  MUST(!entry.places.empty() && !entry.fingerprint.empty());
  MUST(std::count_if(begin, end, [](const auto& item) { return !item.second->load; }) <= 1);
  return {};
}

Result<> audit_names(const Tables& t) {
  std::set<std::tuple<std::string, std::string, std::uint64_t>> generations;
  for (const auto& [text, name] : t.names) {
    MUST(!name.lines.empty() && *name.text == text);
    std::set<std::tuple<std::string, std::uint32_t, std::uint16_t>> keys;
    for (const auto& line : name.lines) {
      MUST(line->name == &name && !line->empty());
      MUST(keys.emplace(*line->form, line->world, line->device).second);
      for (const Entry* load : line->loads) MUST(load->load && load->load->line == line.get());
      std::vector<Set*> attachable = line->old;
      if (line->current != nullptr) attachable.push_back(line->current);
      for (const Set* set : attachable) {
        MUST(set->line == line.get() && set->attachable());
        MUST(generations.emplace(text, *line->form, set->generation).second);
      }
    }
  }
  return {};
}

Result<> audit_accounts(const Tables& t) {
  std::vector<DeviceStatus> sums(t.devices.size());
  std::size_t aliases = 0;
  for (const auto& [id, entry] : t.entries) {
    DeviceStatus& sum = sums[entry.device];
    (entry.load ? sum.loading_bytes : sum.resident_bytes) += entry.bytes;
    aliases += entry.aliases.size();
  }
  for (const auto& [id, each] : t.releasing) sums[each.device].releasing_bytes += each.bytes;
  for (std::size_t at = 0; at < sums.size(); ++at) {
    MUST(sums[at].resident_bytes == t.devices[at].resident_bytes);
    MUST(sums[at].loading_bytes == t.devices[at].loading_bytes);
    MUST(sums[at].releasing_bytes == t.devices[at].releasing_bytes);
  }
  MUST(aliases == t.content.alias_count());
  return {};
}

Result<> audit_leases(const Tables& t) {
  std::map<const Session*, std::uint32_t> by_session;
  std::map<std::pair<const Set*, std::uint32_t>, std::uint32_t> by_place;
  std::size_t used = 0;
  for (std::uint32_t slot = 0; slot < t.leases.slots(); ++slot) {
    const Lease& lease = t.leases.at(slot);
    if (lease.session == nullptr) continue;
    ++used;
    ++by_session[lease.session];
    ++by_place[{lease.place.set, lease.place.rank}];
  }
  MUST(used == t.leases.size());
  std::size_t waits = 0;
  for (const auto& [id, session] : t.sessions) {
    MUST(session.id == id && session.leases == by_session[&session]);
    waits += session.waits.size();
    for (const EntryId load : session.loads) MUST(t.loads.contains(load));
  }
  MUST(waits == t.waits.size());
  for (const auto& [id, set] : t.sets) {
    for (std::uint32_t rank = 0; rank < set.world(); ++rank) {
      MUST(set.members[rank].leases == by_place[{&set, rank}]);
    }
  }
  return {};
}

// Nobody waits for what is there, or for what will not come.
Result<> audit_waits(const Tables& t) {
  MUST(t.changed.empty());
  for (const auto& [key, waiter] : t.waits.all()) {
    if (const auto* begin = std::get_if<BeginWait>(&waiter.what)) {
      MUST(begin->behind != nullptr && begin->behind->load);
      MUST(has(begin->behind->load->waiters, &waiter));
    } else if (const auto* drain = std::get_if<DrainWait>(&waiter.what)) {
      MUST(!drain->left.empty());
      for (const Entry* entry : drain->left) MUST(entry->leases && has(entry->drains, &waiter));
    } else if (const auto* room = std::get_if<RoomWait>(&waiter.what)) {
      MUST(room->load->load && room->load->load->room == &waiter && room->bytes != 0);
      MUST(has(t.waits.for_room(), &waiter));
      MUST(room->promised || room->evicted.empty());
    } else {
      MUST(!t.attachable(std::get<EntryWait>(waiter.what).selector));
    }
  }
  return {};
}

#undef MUST

}  // namespace

Result<> Catalog::audit() const {
  const Tables& t = *tables_;
  for (const auto& [id, set] : t.sets) {
    TRY(audit_set(t, set));
  }
  for (const auto& [id, entry] : t.entries) {
    TRY(audit_entry(t, entry));
  }
  TRY(audit_names(t));
  TRY(audit_accounts(t));
  TRY(audit_leases(t));
  return audit_waits(t);
}

}  // namespace wc::catalog
