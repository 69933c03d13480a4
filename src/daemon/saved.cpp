#include "daemon/saved.hpp"

#include "catalog/limits.hpp"
#include "saved_generated.h"
#include "wire/limits.hpp"

namespace wc::daemon {
namespace {

namespace fb = saved;

template <typename Table>
std::string packed(const typename Table::NativeTableType& object) {
  flatbuffers::FlatBufferBuilder builder;
  const auto root = Table::Pack(builder, &object);
  if constexpr (std::is_same_v<Table, fb::State>) {
    fb::FinishStateBuffer(builder, root);
  } else {
    builder.Finish(root);
  }
  return {reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()};
}

template <typename Table>
Result<typename Table::NativeTableType> unpacked(std::span<const std::byte> bytes,
                                                 const char* identifier = nullptr) {
  // Aligned as the verifier wants it, wherever the bytes come from.
  const std::vector<std::uint64_t> copy = [&] {
    std::vector<std::uint64_t> words(bytes.size() / 8 + 1);
    std::ranges::copy(bytes, std::as_writable_bytes(std::span(words)).begin());
    return words;
  }();
  const auto* data = reinterpret_cast<const std::uint8_t*>(copy.data());
  flatbuffers::Verifier::Options limits;
  limits.max_depth = 8;
  // Each part once: else a small buffer could unpack to a large one.
  limits.max_tables = static_cast<flatbuffers::uoffset_t>(bytes.size() / 8 + 1);
  flatbuffers::Verifier verifier(data, bytes.size(), limits);
  if (!verifier.VerifyBuffer<Table>(identifier))
    return fail(Code::corrupt, "the saved state ({} bytes) is damaged", bytes.size());
  typename Table::NativeTableType out;
  flatbuffers::GetRoot<Table>(data)->UnPackTo(&out);
  return out;
}

// Nulls do not come from a daemon; UnPack leaves them as empty pointers.
template <typename T>
Result<> whole(const std::vector<std::unique_ptr<T>>& items, std::size_t most) {
  if (items.size() > most) return fail(Code::corrupt, "the saved state has {} items", items.size());
  for (const auto& item : items) {
    if (!item) return fail(Code::corrupt, "the saved state lacks an item");
  }
  return {};
}

fb::EntryT to_saved(const catalog::SavedEntry& from) {
  const auto& [id, draining, pinned, proven, transport, device, segments, rank, world, tensors,
               publisher_uid, bytes, total_bytes, address, since_unix_ns, used_unix_ns, used_ns,
               guarded_ns, keep_alive_ns, form, fingerprint, structure, source_digest, source,
               failure, aliases] = from;
  fb::EntryT out;
  out.id = static_cast<std::uint64_t>(id);
  out.draining = draining;
  out.pinned = pinned;
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
  out.used_ns = used_ns;
  out.guarded_ns = guarded_ns;
  out.keep_alive_ns = keep_alive_ns;
  out.form = form;
  out.fingerprint = fingerprint;
  out.structure = structure;
  out.source_digest = source_digest;
  out.source = source;
  out.aliases = aliases;
  out.proven = proven;
  out.address = address;
  out.failure = failure;
  return out;
}

catalog::SavedEntry from_saved(fb::EntryT& from) {
  catalog::SavedEntry out;
  out.id = catalog::EntryId{from.id};
  out.draining = from.draining;
  out.pinned = from.pinned;
  out.transport = from.transport;
  out.device = from.device;
  out.segments = from.segments;
  out.rank = from.rank;
  out.world = from.world;
  out.tensors = from.tensors;
  out.bytes = from.bytes;
  out.total_bytes = from.total_bytes;
  out.since_unix_ns = from.since_unix_ns;
  out.publisher_uid = from.publisher_uid;
  out.used_unix_ns = from.used_unix_ns;
  out.used_ns = from.used_ns;
  out.guarded_ns = from.guarded_ns;
  out.keep_alive_ns = from.keep_alive_ns;
  out.form = std::move(from.form);
  out.fingerprint = std::move(from.fingerprint);
  out.structure = std::move(from.structure);
  out.source_digest = std::move(from.source_digest);
  out.source = std::move(from.source);
  out.aliases = std::move(from.aliases);
  out.proven = from.proven;
  out.address = from.address;
  out.failure = std::move(from.failure);
  return out;
}

fb::SetT to_saved(const catalog::SavedSet& from) {
  const auto& [id, name, form, members, generation, switched, status] = from;
  fb::SetT out;
  out.id = id;
  out.name = name;
  out.form = form;
  for (const catalog::EntryId member : members)
    out.members.push_back(static_cast<std::uint64_t>(member));
  out.generation = generation;
  out.switched = switched;
  out.status = status;
  return out;
}

std::vector<std::uint8_t> octets(const std::vector<std::byte>& from) {
  std::vector<std::uint8_t> out;
  for (const std::byte byte : from) out.push_back(std::to_integer<std::uint8_t>(byte));
  return out;
}

std::vector<std::byte> bytes_of(const std::vector<std::uint8_t>& from) {
  std::vector<std::byte> out;
  for (const std::uint8_t byte : from) out.push_back(std::byte{byte});
  return out;
}

Result<> check_memory(const fb::MemoryT& saved, std::size_t descriptors) {
  TRY(whole(saved.segments, wire::kMaxSegments));
  const bool ipc = saved.transport == static_cast<std::uint8_t>(memory::Transport::torch_ipc);
  if (saved.transport < 1 || saved.transport > 3 || saved.segments.empty() ||
      descriptors != 1 + (ipc ? 0 : saved.segments.size()))
    return fail(Code::corrupt, "the saved memory has {} segments and {} descriptors",
                saved.segments.size(), descriptors);
  return {};
}

}  // namespace

std::string save_state(const catalog::Snapshot& snapshot) {
  const auto& [switches, floor, devices, counters, entries, sets] = snapshot;
  fb::StateT state;
  state.version = kStateVersion;
  state.switches = switches;
  state.floor = floor;
  for (const auto& [device, from, budget, capacity] : devices) {
    fb::DeviceT out;
    out.device = device;
    out.budget_from = from;
    out.budget_bytes = budget;
    out.capacity_bytes = capacity;
    state.devices.push_back(std::make_unique<fb::DeviceT>(std::move(out)));
  }
  for (const auto& [name, form, last] : counters) {
    fb::CounterT out;
    out.name = name;
    out.form = form;
    out.last = last;
    state.counters.push_back(std::make_unique<fb::CounterT>(std::move(out)));
  }
  for (const auto& entry : entries)
    state.entries.push_back(std::make_unique<fb::EntryT>(to_saved(entry)));
  for (const auto& set : sets) state.sets.push_back(std::make_unique<fb::SetT>(to_saved(set)));
  return packed<fb::State>(state);
}

Result<catalog::Snapshot> read_state(std::span<const std::byte> bytes) {
  auto state = TRY(unpacked<fb::State>(bytes, fb::StateIdentifier()));
  if (state.version != kStateVersion)
    return fail(Code::version, "the saved state has version {}, this daemon reads {}: {}",
                state.version, kStateVersion, "start the version that wrote it");
  TRY(whole(state.devices, catalog::kMaxDevices));
  TRY(whole(state.counters, 2 * catalog::kMaxForgotten + 2 * catalog::kMaxSets));
  TRY(whole(state.entries, catalog::kMaxEntries));
  TRY(whole(state.sets, catalog::kMaxSets));
  catalog::Snapshot out;
  out.switches = state.switches;
  out.floor = state.floor;
  for (auto& device : state.devices)
    out.devices.push_back({std::move(device->device), std::move(device->budget_from),
                           device->budget_bytes, device->capacity_bytes});
  for (auto& counter : state.counters)
    out.counters.push_back({std::move(counter->name), std::move(counter->form), counter->last});
  for (auto& entry : state.entries) out.entries.push_back(from_saved(*entry));
  for (auto& set : state.sets) {
    std::vector<catalog::EntryId> members;
    for (const std::uint64_t member : set->members) members.push_back(catalog::EntryId{member});
    out.sets.push_back({set->id, std::move(set->name), std::move(set->form), std::move(members),
                        set->generation, set->switched, set->status});
  }
  return out;
}

std::string save_memory(const StoredEntry& entry) {
  fb::MemoryT out;
  out.transport = static_cast<std::uint8_t>(entry.transport);
  out.owner = static_cast<std::uint64_t>(entry.owner);
  out.device = entry.device;
  out.fingerprint = entry.fingerprint;
  out.manifest_bytes = entry.manifest_bytes;
  for (const StoredSegment& segment : entry.segments) {
    auto saved = std::make_unique<fb::SegmentT>();
    saved->bytes = segment.bytes;
    saved->address = segment.address;
    if (segment.handle) {
      if (const auto* ipc = std::get_if<memory::IpcHandle>(&*segment.handle)) {
        saved->handle = octets(ipc->handle);
        saved->offset_bytes = ipc->offset_bytes;
        saved->event = octets(ipc->event);
        saved->counter = ipc->counter;
        saved->counter_offset = ipc->counter_offset;
      }
    }
    out.segments.push_back(std::move(saved));
  }
  return packed<fb::Memory>(out);
}

Result<StoredEntry> read_memory(std::span<const std::byte> bytes, std::vector<Fd> descriptors) {
  auto saved = TRY(unpacked<fb::Memory>(bytes));
  TRY(check_memory(saved, descriptors.size()));
  StoredEntry out;
  out.transport = static_cast<memory::Transport>(saved.transport);
  out.owner = catalog::SessionId{saved.owner};
  out.loading = false;
  out.device = std::move(saved.device);
  out.fingerprint = std::move(saved.fingerprint);
  out.manifest_bytes = saved.manifest_bytes;
  out.manifest = std::move(descriptors.front());
  for (std::size_t at = 0; at < saved.segments.size(); ++at) {
    fb::SegmentT& from = *saved.segments[at];
    StoredSegment segment{from.bytes, from.address, {}};
    if (out.transport == memory::Transport::torch_ipc) {
      segment.handle =
          memory::IpcHandle{bytes_of(from.handle), from.offset_bytes, bytes_of(from.event),
                            std::move(from.counter), from.counter_offset};
    } else {
      segment.handle = std::move(descriptors[at + 1]);
    }
    out.segments.push_back(std::move(segment));
  }
  return out;
}

std::string save_connection(const PeerText& text) {
  const auto& [label, command, container, capabilities] = text;
  fb::ConnectionT out;
  out.label = label;
  out.command = command;
  out.container = container;
  out.capabilities = capabilities;
  return packed<fb::Connection>(out);
}

Result<PeerText> read_connection(std::span<const std::byte> bytes) {
  auto saved = TRY(unpacked<fb::Connection>(bytes));
  return PeerText{std::move(saved.label), std::move(saved.command), std::move(saved.container),
                  saved.capabilities};
}

std::string save_lease(const KeptLease& lease) {
  fb::LeaseT out;
  out.set = lease.lease.set;
  out.rank = lease.lease.rank;
  out.since_unix_ns = lease.lease.since_unix_ns;
  out.request = lease.request;
  return packed<fb::Lease>(out);
}

Result<KeptLease> read_lease(std::span<const std::byte> bytes) {
  const auto saved = TRY(unpacked<fb::Lease>(bytes));
  return KeptLease{{catalog::LeaseId::none, saved.set, saved.rank, saved.since_unix_ns},
                   saved.request};
}

}  // namespace wc::daemon
