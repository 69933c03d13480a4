// Restoring, into an empty catalog. What comes is checked as if it were foreign: a state that does
// not fit together is refused, never repaired.
#include <algorithm>

#include "catalog/catalog.hpp"
#include "catalog/limits.hpp"
#include "catalog/tables.hpp"
#include "manifest/selector.hpp"

namespace wc::catalog {
namespace {

constexpr std::int64_t kLatestNs = INT64_MAX / 2;  // leaves room for any time to be added

template <typename... Args>
Failure unfit(fmt::format_string<Args...> text, Args&&... args) {
  return fail(Code::corrupt, "the saved state does not fit together: {}",
              wc::format(text, std::forward<Args>(args)...));
}

Result<> restore_devices(Tables& t, const Snapshot& from) {
  if (from.devices.size() > kMaxDevices) return unfit("{} devices", from.devices.size());
  for (const SavedDevice& saved : from.devices) {
    if (t.find_device(saved.device) != kNoDevice) return unfit("two devices \"{}\"", saved.device);
    const std::uint16_t at = TRY(t.make_device(saved.device));
    t.devices[at].budget_bytes = saved.budget_bytes;
    t.devices[at].budget_from = saved.budget_from;
    t.devices[at].capacity_bytes = saved.capacity_bytes;
  }
  return {};
}

Result<> check_entry(const Tables& t, const SavedEntry& saved) {
  if (saved.id == EntryId::none || t.entries.contains(saved.id))
    return unfit("entry {} twice, or none", std::to_underlying(saved.id));
  if (saved.device >= t.devices.size()) return unfit("device {}", saved.device);
  if (saved.segments == 0 || saved.segments > kMaxSegments || saved.form.empty() ||
      saved.form.size() > kMaxFormBytes || saved.source.size() > kMaxSourceBytes ||
      saved.failure.size() > kMaxFailureBytes || saved.structure.size() > kMaxDigestBytes ||
      saved.source_digest.size() > kMaxDigestBytes)
    return unfit("entry {} is beyond its bounds", std::to_underlying(saved.id));
  if (saved.bytes > kMaxSegments * kMaxSegmentBytes ||
      saved.bytes > UINT64_MAX - t.devices[saved.device].resident_bytes)
    return unfit("entry {} has {} bytes", std::to_underlying(saved.id), saved.bytes);
  if (saved.world == 0 || saved.world > kMaxWorld || saved.rank >= saved.world)
    return unfit("rank {} of {}", saved.rank, saved.world);
  const auto time = [](std::int64_t ns) { return ns >= 0 && ns <= kLatestNs; };
  const std::chrono::nanoseconds keep_alive(saved.keep_alive_ns);
  if (!time(saved.used_ns) || !time(saved.guarded_ns) || valid_keep_alive(keep_alive) != keep_alive)
    return unfit("the times of entry {}", std::to_underlying(saved.id));
  TRY(valid_fingerprint(saved.fingerprint));
  return valid_aliases(saved.aliases);
}

Result<> restore_entries(Tables& t, const Snapshot& from) {
  if (from.entries.size() > kMaxEntries) return unfit("{} entries", from.entries.size());
  for (const SavedEntry& saved : from.entries) {
    TRY(check_entry(t, saved));
    Entry& entry = t.entries[saved.id];
    entry.id = saved.id;
    entry.found = false;  // until a set names it
    entry.draining = saved.draining;
    entry.pinned = saved.pinned;
    entry.proven = saved.proven;
    entry.address = saved.address;
    entry.failure = saved.failure;
    entry.transport = saved.transport;
    entry.device = saved.device;
    entry.segments = saved.segments;
    entry.rank = saved.rank;
    entry.world = saved.world;
    entry.tensors = saved.tensors;
    entry.bytes = saved.bytes;
    entry.total_bytes = saved.total_bytes;
    entry.done_bytes = saved.total_bytes;
    entry.since_unix_ns = saved.since_unix_ns;
    entry.publisher_uid = saved.publisher_uid;
    entry.used_unix_ns = saved.used_unix_ns;
    entry.used = Time(std::chrono::nanoseconds(saved.used_ns));
    entry.guarded = Time(std::chrono::nanoseconds(saved.guarded_ns));
    entry.keep_alive = std::chrono::nanoseconds(saved.keep_alive_ns);
    entry.form = t.text_of_form(saved.form);
    entry.fingerprint = saved.fingerprint;
    entry.structure = saved.structure;
    entry.source_digest = saved.source_digest;
    entry.source = saved.source;
    t.devices[entry.device].resident_bytes += entry.bytes;
    t.next_id = std::max(t.next_id, std::to_underlying(saved.id) + 1);
  }
  return {};
}

Result<> join_line(Tables& t, Set& set, std::uint16_t device) {
  Line* line = TRY(t.make_line({*set.name, *set.form, set.world(), device}));
  set.line = line;
  set.name = line->name->text;
  set.form = line->form;
  if (set.status == Set::Status::old) {
    line->old.push_back(&set);
    return {};
  }
  Set*& place = set.status == Set::Status::current ? line->current : line->pending;
  if (place != nullptr) return unfit("\"{}\" is {} twice", *set.name, line->form->c_str());
  place = &set;
  return {};
}

// The other ends of its references; the device of one of its members.
Result<std::uint16_t> join_members(Tables& t, Set& set, const SavedSet& saved) {
  std::uint16_t device = kNoDevice;
  for (std::uint32_t rank = 0; rank < set.world(); ++rank) {
    const EntryId id = saved.members[rank];
    if (id == EntryId::none) continue;
    const auto entry = t.entries.find(id);
    if (entry == t.entries.end()) return unfit("entry {} is missing", std::to_underlying(id));
    set.members[rank].entry = &entry->second;
    entry->second.places.push_back(Place{&set, rank});
    device = entry->second.device;
  }
  if (device == kNoDevice) return unfit("a set of \"{}\" without members", saved.name);
  return device;
}

Result<> restore_sets(Tables& t, const Snapshot& from) {
  if (from.sets.size() > kMaxSets) return unfit("{} sets", from.sets.size());
  for (const SavedSet& saved : from.sets) {
    if (saved.id == 0 || saved.id == UINT64_MAX || t.sets.contains(saved.id) ||
        saved.members.empty() || saved.members.size() > kMaxWorld || saved.form.empty() ||
        saved.form.size() > kMaxFormBytes || saved.status > std::to_underlying(Set::Status::gone))
      return unfit("set {} is none", saved.id);
    TRY(manifest::valid_name(saved.name));
    Set& set = t.sets[saved.id];
    set.id = saved.id;
    set.name = std::make_shared<const std::string>(saved.name);
    set.form = t.text_of_form(saved.form);
    set.members.resize(saved.members.size());
    set.generation = saved.generation;
    set.switched = saved.switched;
    set.status = static_cast<Set::Status>(saved.status);
    t.next_id = std::max(t.next_id, saved.id + 1);
    const std::uint16_t device = TRY(join_members(t, set, saved));
    if (set.status != Set::Status::gone) TRY(join_line(t, set, device));
  }
  return {};
}

Result<> index_entries(Tables& t, const Snapshot& from) {
  for (const SavedEntry& saved : from.entries) {
    Entry& entry = t.entries.at(saved.id);
    entry.found = std::ranges::any_of(
        entry.places, [](const Place& place) { return place.set->status != Set::Status::gone; });
    if (entry.places.empty()) return unfit("entry {} has no name", std::to_underlying(saved.id));
    if (!entry.found) continue;
    if (t.content.alias_count() + saved.aliases.size() > kMaxAliases) return unfit("its aliases");
    t.content.add_fingerprint(entry);
    t.content.add_aliases(entry, saved.aliases);
  }
  return {};
}

}  // namespace

Result<> Generations::restore(std::uint64_t floor, const std::vector<SavedCounter>& counters) {
  floor_ = floor;
  for (const SavedCounter& saved : counters) {
    if (saved.last <= floor || counters_.contains(View{saved.name, saved.form}))
      return unfit("the generations of \"{}\"", saved.name);
    counters_.emplace(Key{saved.name, saved.form}, Counter{saved.last, 0});
    ++idle_;
    idle_bytes_ += saved.name.size() + saved.form.size();
  }
  return {};
}

std::uint64_t Generations::last(std::string_view name, std::string_view form) const {
  const auto at = counters_.find(View{name, form});
  return at == counters_.end() ? 0 : at->second.last;
}

Result<> Catalog::restore(const Snapshot& from) {
  Tables& t = *tables_;
  if (!t.entries.empty() || !t.sessions.empty())
    return fail(Code::internal, "a state is restored into an empty catalog");
  TRY(t.generations.restore(from.floor, from.counters));
  TRY(restore_devices(t, from));
  TRY(restore_entries(t, from));
  TRY(restore_sets(t, from));
  TRY(index_entries(t, from));
  t.switches = from.switches;
  for (const auto& [id, set] : t.sets) {
    if (set.generation > t.generations.last(*set.name, *set.form) && set.line != nullptr)
      return unfit("\"{}\" has a generation that never was", *set.name);
    if (set.switched > t.switches) return unfit("\"{}\" was switched to too late", *set.name);
  }
  ++t.revision;
  return {};
}

Result<> Catalog::restore_lease(SessionId session, const SavedLease& saved) {
  Tables& t = *tables_;
  Session* by = TRY(t.session(session));
  const auto at = t.sets.find(saved.set);
  if (at == t.sets.end() || saved.rank >= at->second.world() ||
      at->second.members[saved.rank].entry == nullptr || at->second.status == Set::Status::pending)
    return unfit("lease {} is of nothing", std::to_underlying(saved.lease));
  const Place place{&at->second, saved.rank};
  if (by->leases >= kMaxLeasesOfSession || t.leases.size() >= kMaxLeases ||
      !t.leases.restore(saved.lease, *by, place, saved.since_unix_ns))
    return unfit("lease {} is there twice", std::to_underlying(saved.lease));
  ++place.member().leases;
  ++place.set->leases;
  ++place.entry().leases;
  return {};
}

// What only leases kept, whose connections have not come back.
Result<> Catalog::restored(std::uint32_t first_use) {
  Tables& t = *tables_;
  t.leases.restored(first_use);
  std::vector<std::uint64_t> ids;
  for (const auto& [id, set] : t.sets) ids.push_back(id);
  for (const std::uint64_t id : ids) {
    const auto at = t.sets.find(id);
    if (at == t.sets.end()) continue;
    Set& set = at->second;
    if (set.status == Set::Status::old) {
      const bool whole =
          std::ranges::all_of(set.members, [](const Member& m) { return m.entry != nullptr; });
      if (!whole) return unfit("generation {} of \"{}\" lacks ranks", set.generation, *set.name);
      t.drop_if_idle(set);
    } else if (set.status == Set::Status::gone) {
      for (std::uint32_t rank = 0; rank < set.world(); ++rank) {
        const Member& member = set.members[rank];
        if (member.entry != nullptr && member.leases == 0) t.drop(Place{&set, rank});
      }
      if (set.leases == 0) t.sets.erase(id);
    }
  }
  t.wake();
  return audit();
}

}  // namespace wc::catalog
