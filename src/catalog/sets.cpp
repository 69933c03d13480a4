// Lines and sets, and with them the life of an entry: it lives by the sets that refer to it, is
// found by those that were not taken away, and its memory goes when no set and no lease is left.
#include <algorithm>
#include <set>
#include <utility>

#include "base/units.hpp"
#include "catalog/limits.hpp"
#include "catalog/tables.hpp"

namespace wc::catalog {

Line* Tables::find_line(const LineKey& key) {
  const auto name = names.find(key.name);
  if (name == names.end()) return nullptr;
  for (const auto& line : name->second.lines) {
    if (line->world == key.world && *line->form == key.form &&
        (key.world > 1 || line->device == key.device))
      return line.get();
  }
  return nullptr;
}

Result<Line*> Tables::make_line(const LineKey& key) {
  if (Line* known = find_line(key)) return known;
  auto at = names.find(key.name);
  if (at != names.end() && at->second.lines.size() >= kMaxLinesOfName)
    return fail(Code::exhausted, "\"{}\" has {} forms and partitions already", key.name,
                kMaxLinesOfName);
  if (at == names.end()) {
    at = names.emplace(key.name, Name{std::make_shared<const std::string>(key.name), {}}).first;
  }
  auto line = std::make_unique<Line>();
  line->name = &at->second;
  line->form = text_of_form(key.form);
  line->world = key.world;
  line->device = key.world > 1 ? kAnyDevice : key.device;
  generations.hold(key.name, key.form);
  return at->second.lines.emplace_back(std::move(line)).get();
}

void Tables::tidy(Line& line) {
  if (!line.empty()) return;
  ++revision;
  Name& name = *line.name;
  const Text text = name.text;
  generations.let_go(*text, *line.form);
  std::erase_if(name.lines, [&](const auto& each) { return each.get() == &line; });
  if (name.lines.empty()) names.erase(*text);
}

Result<Set*> Tables::make_pending(Line& line) {
  if (line.pending != nullptr) return line.pending;
  if (sets.size() >= kMaxSets)
    return fail(Code::exhausted, "{} names and generations exist already", format_count(kMaxSets));
  const std::uint64_t id = next_id++;
  Set& set = sets[id];
  set.id = id;
  set.line = &line;
  set.name = line.name->text;
  set.form = line.form;
  set.members.resize(line.world);
  line.pending = &set;
  return &set;
}

Place Tables::put(Set& pending, std::uint32_t rank, Entry& entry) {
  const Place place{&pending, rank};
  place.member().entry = &entry;
  entry.places.push_back(place);
  ++revision;
  const bool complete =
      std::ranges::all_of(pending.members, [](const Member& m) { return m.entry != nullptr; });
  if (complete) switch_sets(*pending.line);
  return place;
}

void Tables::switch_sets(Line& line) {
  Set& set = *std::exchange(line.pending, nullptr);
  ++revision;
  set.status = Set::Status::current;
  set.generation = generations.next(*set.name, *set.form);
  set.switched = ++switches;
  if (Set* former = std::exchange(line.current, &set)) {
    former->status = Set::Status::old;
    line.old.push_back(former);
    drop_if_idle(*former);
  }
  // What an older generation was kept for by a pin is current again.
  for (const Member& member : set.members) {
    if (member.entry->pinned) drop_idle_sets_of(*member.entry);
  }
  changed.push_back(set.name);
  wake();
}

void Tables::take_away(Set& set) {
  Line& line = *std::exchange(set.line, nullptr);
  ++revision;
  if (set.attachable()) changed.push_back(set.name);
  if (line.current == &set) line.current = nullptr;
  if (line.pending == &set) line.pending = nullptr;
  std::erase(line.old, &set);
  set.status = Set::Status::gone;
  for (std::uint32_t rank = 0; rank < set.world(); ++rank) {
    const Member& member = set.members[rank];
    if (member.entry == nullptr) continue;
    if (member.leases == 0) {
      drop(Place{&set, rank});
    } else {
      settle(*member.entry);
    }
  }
  if (set.leases == 0) sets.erase(set.id);
  tidy(line);
}

void Tables::drop(const Place& place) {
  Entry& entry = place.entry();
  ++revision;
  std::erase(entry.places, place);
  place.member().entry = nullptr;
  settle(entry);
}

void Tables::drop_if_idle(Set& old) {
  if (old.leases != 0) return;
  const bool kept = std::ranges::any_of(old.members, [](const Member& member) {
    return member.entry->pinned &&
           std::ranges::none_of(member.entry->places, [](const Place& place) {
             return place.set->status == Set::Status::current;
           });
  });
  if (!kept) take_away(old);
}

void Tables::drop_idle_sets_of(const Entry& entry) {
  std::set<std::uint64_t> old;  // by id: the entry may have several ranks of one set
  for (const Place& place : entry.places) {
    if (place.set->status == Set::Status::old) old.insert(place.set->id);
  }
  for (const std::uint64_t id : old) drop_if_idle(sets.at(id));
}

void Tables::settle(Entry& entry) {
  const bool named = std::ranges::any_of(
      entry.places, [](const Place& place) { return place.set->status != Set::Status::gone; });
  if (!named && entry.found) {
    content.remove_fingerprint(entry);
    content.remove_aliases(entry);
    entry.found = false;
  }
  if (entry.places.empty()) release(entry);
}

void Tables::release(Entry& entry) {
  DeviceStatus& device = devices[entry.device];
  (entry.load ? device.loading_bytes : device.resident_bytes) -= entry.bytes;
  if (entry.segments != 0) {
    device.releasing_bytes += entry.bytes;
    releasing.emplace(entry.id, Releasing{entry.device, entry.bytes});
    effects.emplace_back(ReleaseMemory{entry.id, entry.bytes});
  }
  if (entry.found) {
    content.remove_fingerprint(entry);
    content.remove_aliases(entry);
  }
  entries.erase(entry.id);
}

void Tables::use(Entry& entry, const Now& now) {
  entry.used = now.steady;
  ++uses;
  entry.used_unix_ns = now.unix_ns;
}

// A reader that died is about to come back: what it read is wanted then.
void Tables::end_lease(LeaseId id, bool died, const Now& now) {
  const Place place = leases.find(id)->place;
  leases.remove(id);
  Set& set = *place.set;
  Entry& entry = place.entry();
  use(entry, now);
  if (died) {
    entry.guarded = std::max(entry.guarded, now.steady + protection);
    ++revision;
  }
  --place.member().leases;
  --set.leases;
  if (--entry.leases == 0) drained(entry);
  if (set.status == Set::Status::old) {
    drop_if_idle(set);
  } else if (set.status == Set::Status::gone) {
    if (place.member().leases == 0) drop(place);
    if (set.leases == 0) sets.erase(set.id);
    ++revision;
  }
  wake();
}

bool Tables::fail_entry(Entry& entry, std::string_view why) {
  if (!entry.found || entry.leases != 0 || entry.proven || !entry.failure.empty()) return false;
  ++revision;
  entry.failure = why.empty() ? "no reader can map it" : why.substr(0, kMaxFailureBytes);
  for (const Place& place : entry.places) changed.push_back(place.set->name);
  wake();
  return true;
}

void Tables::discard(Entry& entry) {
  std::set<std::uint64_t> ids;  // the entry may have several ranks of one set
  for (const Place& place : entry.places) {
    if (place.set->status != Set::Status::gone) ids.insert(place.set->id);
  }
  for (const std::uint64_t id : ids) take_away(sets.at(id));
  wake();
}

}  // namespace wc::catalog
