// What operators do with entries: evict, pin, drain.
#include <algorithm>
#include <map>
#include <set>

#include "catalog/catalog.hpp"
#include "catalog/limits.hpp"
#include "catalog/tables.hpp"

namespace wc::catalog {
namespace {

/// What an eviction means.
struct Victims {
  std::map<std::uint64_t, Set*> sets;  // by id, the oldest first
  std::vector<Entry*> loads;
};

void add(const Tables& tables, const Selector& selector, Set* set, Victims& victims) {
  if (set == nullptr || victims.sets.contains(set->id)) return;
  const bool meant = std::ranges::any_of(set->members, [&](const Member& member) {
    return member.entry != nullptr &&
           matches(selector, {*set->name, *set->form, tables.devices[member.entry->device].device,
                              set->world(), set->generation, member.entry});
  });
  if (meant) victims.sets.emplace(set->id, set);
}

void add(const Tables& tables, const Selector& selector, Entry& load, Victims& victims) {
  const Subject subject{*load.load->line->name->text,
                        *load.form,
                        tables.devices[load.device].device,
                        load.world,
                        0,
                        &load};
  if (matches(selector, subject) && std::ranges::find(victims.loads, &load) == victims.loads.end())
    victims.loads.push_back(&load);
}

void add_all_of(const Tables& tables, const Selector& selector, Entry& entry, Victims& victims) {
  if (entry.load) {
    add(tables, selector, entry, victims);
  } else {
    for (const Place& place : entry.places) {
      if (place.set->status != Set::Status::gone) add(tables, selector, place.set, victims);
    }
  }
}

Result<Victims> victims_of(Tables& tables, const Selector& selector) {
  Victims victims;
  if (!selector.name.empty()) {
    const auto name = tables.names.find(selector.name);
    if (name == tables.names.end()) return victims;
    for (const auto& line : name->second.lines) {
      add(tables, selector, line->current, victims);
      add(tables, selector, line->pending, victims);
      for (Set* set : line->old) add(tables, selector, set, victims);
      for (Entry* load : line->loads) add(tables, selector, *load, victims);
    }
    return victims;
  }
  const std::string& prefix = selector.fingerprint;
  std::string_view first;
  for (auto at = tables.content.from(prefix);
       !prefix.empty() && at != tables.content.end() && at->first.fingerprint.starts_with(prefix);
       ++at) {
    if (!first.empty() && first != at->first.fingerprint)
      return fail(Code::invalid_argument, "\"@{}\" is not unique: it begins {} and {}", prefix,
                  first, at->first.fingerprint);
    first = at->first.fingerprint;
    add_all_of(tables, selector, *at->second, victims);
  }
  for (const std::string& alias : selector.aliases) {
    if (!prefix.empty()) break;
    for (Entry* entry : tables.content.known_by(alias)) {
      add_all_of(tables, selector, *entry, victims);
    }
  }
  return victims;
}

Result<> check_unforced(const Victims& victims) {
  for (const auto& [id, set] : victims.sets) {
    for (const Member& member : set->members) {
      if (member.entry != nullptr && member.entry->pinned)
        return fail(Code::busy, "\"{}\" is pinned: unpin it, or evict it by force", *set->name);
    }
  }
  if (!victims.loads.empty()) {
    const Entry& load = *victims.loads.front();
    return fail(Code::busy, "\"{}\" is being loaded ({}): wait, or evict it by force",
                *load.load->line->name->text, how_far(load));
  }
  return {};
}

// Bytes and leases of the entries that have no other name.
Evicted account_of(const Victims& victims) {
  Evicted evicted;
  std::set<const Entry*> counted;
  for (const auto& [id, set] : victims.sets) {
    for (const Member& member : set->members) {
      if (member.entry == nullptr) continue;
      ++evicted.entries;
      if (!counted.insert(member.entry).second) continue;
      const bool stays = std::ranges::any_of(member.entry->places, [&](const Place& place) {
        return place.set->status != Set::Status::gone && !victims.sets.contains(place.set->id);
      });
      if (stays) continue;
      evicted.bytes += member.entry->bytes;
      evicted.leases += member.entry->leases;
    }
  }
  for (const Entry* load : victims.loads) {
    ++evicted.entries;
    evicted.bytes += load->bytes;
  }
  return evicted;
}

// By name every rank, else the one.
std::vector<Entry*> members_meant(const Selector& selector, const Place& place) {
  if (selector.name.empty()) return {&place.entry()};
  std::vector<Entry*> entries;
  for (const Member& member : place.set->members) {
    if (std::ranges::find(entries, member.entry) == entries.end()) entries.push_back(member.entry);
  }
  return entries;
}

}  // namespace

Result<Evicted> Catalog::evict(const Selector& selector, bool force, const Now& now) {
  Tables& t = *tables_;
  TRY(valid_selector(selector, false));
  const Victims victims = TRY(victims_of(t, selector));
  if (victims.sets.empty() && victims.loads.empty()) {
    const Result<Place> none = t.resolve_or_explain(selector);
    if (!none) return Failure(none.error());
    return fail(Code::not_found, "there is no {}", describe(selector));
  }
  if (!force) TRY(check_unforced(victims));
  const Evicted evicted = account_of(victims);
  std::vector<EntryId> cancelled;
  for (const Entry* load : victims.loads) cancelled.push_back(load->id);
  std::ranges::sort(cancelled);  // those who wait take over in the order of the loads
  for (const auto& [id, set] : victims.sets) t.take_away(*set);
  for (const EntryId id : cancelled) {
    Entry& load = t.entries.at(id);
    Session& loader = t.sessions.at(load.load->session);
    if (loader.cancelled.size() >= kMaxLoadsOfSession)
      loader.cancelled.erase(loader.cancelled.begin());
    loader.cancelled.push_back(id);
    t.effects.emplace_back(CancelLoad{loader.id, id});
    t.end_load(load, now);
  }
  t.wake();
  t.make_room(now);
  return evicted;
}

Result<EntryInfo> Catalog::keep_alive(const Selector& selector, std::chrono::nanoseconds time,
                                      const Now& now) {
  Tables& t = *tables_;
  TRY(valid_selector(selector, false));
  const Place place = TRY(t.resolve_or_explain(selector));
  for (Entry* entry : members_meant(selector, place)) entry->keep_alive = valid_keep_alive(time);
  ++t.revision;
  EntryInfo reply = t.info(place);
  t.make_room(now);
  return reply;
}

Result<EntryInfo> Catalog::pin(const Selector& selector, bool pinned, const Now& now) {
  Tables& t = *tables_;
  TRY(valid_selector(selector, false));
  const Place place = TRY(t.resolve_or_explain(selector));
  const std::vector<Entry*> meant = members_meant(selector, place);
  for (Entry* entry : meant) entry->pinned = pinned;
  ++t.revision;
  EntryInfo reply = t.info(place);
  if (!pinned) {
    std::vector<EntryId> ids;
    for (const Entry* entry : meant) ids.push_back(entry->id);
    for (const EntryId id : ids) {
      if (const auto at = t.entries.find(id); at != t.entries.end())
        t.drop_idle_sets_of(at->second);
    }
    t.wake();
    t.make_room(now);
  }
  return reply;
}

Result<std::optional<EntryInfo>> Catalog::drain(SessionId session, RequestId request,
                                                const Selector& selector,
                                                std::optional<Time> deadline, const Now& now) {
  Tables& t = *tables_;
  Session* by = TRY(t.session(session));
  TRY(valid_selector(selector, false));
  const Place place = TRY(t.resolve_or_explain(selector));
  DrainWait drain;
  const std::vector<Entry*> meant = members_meant(selector, place);
  std::ranges::copy_if(meant, std::back_inserter(drain.left),
                       [](const Entry* entry) { return entry->leases != 0; });
  if (!drain.left.empty()) TRY(t.waits.room(*by, request));
  for (Entry* entry : meant) entry->draining = true;
  ++t.revision;
  drain.entry = t.info(place);
  if (drain.left.empty()) return std::move(drain.entry);
  Waiter waiter;
  waiter.session = session;
  waiter.request = request;
  waiter.since = now.steady;
  waiter.deadline = std::min(deadline.value_or(Time::max()), now.steady + kMaxWait);
  waiter.what = std::move(drain);
  Waiter& added = t.waits.add(*by, std::move(waiter));
  for (Entry* entry : std::get<DrainWait>(added.what).left) entry->drains.push_back(&added);
  return std::nullopt;
}

Result<EntryInfo> Catalog::undrain(const Selector& selector, const Now& /*now*/) {
  Tables& t = *tables_;
  TRY(valid_selector(selector, false));
  const Place place = TRY(t.resolve_or_explain(selector));
  for (Entry* entry : members_meant(selector, place)) {
    if (!std::exchange(entry->draining, false)) continue;
    ++t.revision;
    for (const Place& each : entry->places) t.changed.push_back(each.set->name);
    while (!entry->drains.empty()) {
      Waiter& waiter = *entry->drains.back();
      t.answer(
          waiter,
          Error{Code::cancelled, format("the drain of {} was undone", describe(selector)), {}});
    }
  }
  t.wake();
  return t.info(place);
}

}  // namespace wc::catalog
