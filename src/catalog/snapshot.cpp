// Saving. Each record is taken apart by name, so that one with a further field does not compile
// until it is decided here what becomes of it.
#include <algorithm>

#include "catalog/catalog.hpp"
#include "catalog/tables.hpp"

namespace wc::catalog {
namespace {

std::int64_t nanoseconds_of(Time time) {
  return std::chrono::nanoseconds(time.time_since_epoch()).count();
}

SavedEntry saved(const Entry& entry) {
  const auto& [id, load, found, draining, pinned, proven, transport, device, segments, rank, world,
               tensors, leases, publisher_uid, bytes, done_bytes, total_bytes, address,
               since_unix_ns, used_unix_ns, used, guarded, keep_alive, form, fingerprint, structure,
               source_digest, source, failure, aliases, places, drains] = entry;
  static_cast<void>(load);        // none: loads are not saved
  static_cast<void>(found);       // follows from its sets
  static_cast<void>(leases);      // saved apart
  static_cast<void>(done_bytes);  // as many as the total
  static_cast<void>(places);      // the sets say
  static_cast<void>(drains);      // requests end with the process
  SavedEntry out;
  out.id = id;
  out.draining = draining;
  out.pinned = pinned;
  out.proven = proven;
  out.address = address;
  out.failure = failure;
  out.transport = transport;
  out.device = device;
  out.segments = segments;
  out.rank = rank;
  out.world = world;
  out.tensors = tensors;
  out.bytes = bytes;
  out.total_bytes = total_bytes;
  out.since_unix_ns = since_unix_ns;
  out.publisher_uid = publisher_uid;
  out.used_unix_ns = used_unix_ns;
  out.used_ns = nanoseconds_of(used);
  out.guarded_ns = nanoseconds_of(guarded);
  out.keep_alive_ns = keep_alive.count();
  out.form = *form;
  out.fingerprint = fingerprint;
  out.structure = structure;
  out.source_digest = source_digest;
  out.source = source;
  for (const std::string* alias : aliases) out.aliases.push_back(*alias);
  return out;
}

SavedSet saved(const Set& set) {
  const auto& [id, line, name, form, members, generation, switched, leases, status] = set;
  static_cast<void>(line);  // follows from the rest
  static_cast<void>(leases);
  SavedSet out;
  out.id = id;
  out.name = *name;
  out.form = *form;
  for (const Member& member : members)
    out.members.push_back(member.entry != nullptr ? member.entry->id : EntryId::none);
  out.generation = generation;
  out.switched = switched;
  out.status = static_cast<std::uint8_t>(status);
  return out;
}

}  // namespace

std::vector<SavedCounter> Generations::saved() const {
  std::vector<SavedCounter> out;
  for (const auto& [key, counter] : counters_) {
    if (counter.last > floor_) out.push_back({key.name, key.form, counter.last});
  }
  return out;
}

Snapshot Catalog::snapshot() const {
  const Tables& t = *tables_;
  Snapshot out;
  out.switches = t.switches;
  out.floor = t.generations.floor();
  for (const DeviceStatus& status : t.devices) {
    const auto& [device, from, budget, capacity, resident, loading, releasing] = status;
    static_cast<void>(resident);  // the sum of the entries
    static_cast<void>(loading);
    static_cast<void>(releasing);
    out.devices.push_back({device, from, budget, capacity});
  }
  out.counters = t.generations.saved();
  out.entries.reserve(t.entries.size());
  for (const auto& [id, entry] : t.entries) {
    if (!entry.load) out.entries.push_back(saved(entry));
  }
  std::ranges::sort(out.entries, {}, &SavedEntry::id);
  out.sets.reserve(t.sets.size());
  for (const auto& [id, set] : t.sets) out.sets.push_back(saved(set));
  return out;
}

std::uint64_t Catalog::revision() const { return tables_->revision; }
std::uint64_t Catalog::uses() const { return tables_->uses; }

std::optional<SavedLease> Catalog::saved_lease(LeaseId lease) const {
  const Lease* found = tables_->leases.find(lease);
  if (found == nullptr) return std::nullopt;
  return SavedLease{lease, found->place.set->id, found->place.rank, found->since_unix_ns};
}

Result<EntryInfo> Catalog::entry_of(SessionId session, LeaseId lease) const {
  const Lease* found = tables_->leases.find(lease);
  if (found == nullptr || found->session->id != session)
    return fail(Code::not_found, "this connection has no lease {}", std::to_underlying(lease));
  return tables_->info(found->place);
}

std::vector<SavedLease> Catalog::leases_of(SessionId session) const {
  std::vector<SavedLease> out;
  const auto at = tables_->sessions.find(session);
  if (at == tables_->sessions.end()) return out;
  const LeaseTable& leases = tables_->leases;
  for (std::uint32_t slot = at->second.first_lease; slot != UINT32_MAX;
       slot = leases.at(slot).next) {
    const Lease& lease = leases.at(slot);
    out.push_back({leases.id_of(slot), lease.place.set->id, lease.place.rank, lease.since_unix_ns});
  }
  return out;
}

}  // namespace wc::catalog
