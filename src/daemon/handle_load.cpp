// From the right to load to memory that is there: host memory comes from the helper, the memory of
// a device from its loader.
#include <algorithm>

#include "base/kill_point.hpp"
#include "base/units.hpp"
#include "daemon/convert.hpp"
#include "daemon/handlers.hpp"
#include "daemon/log.hpp"
#include "manifest/limits.hpp"

namespace wc::daemon {
namespace {

using catalog::EntryId;

// The descriptors that Reserved carries, if they are still there when it is sent.
SendQueue::Descriptors reserved_descriptors(Store& store, const Reserving& what) {
  return [&store, what]() -> Result<std::vector<FdView>> {
    const StoredEntry* stored = store.find(what.load);
    if (stored == nullptr || stored->given_back) {
      return fail(Code::cancelled, "the load was over before its memory was handed out");
    }
    std::vector<FdView> views;
    const bool host = stored->transport == memory::Transport::host_fd;
    const std::size_t first = what.segments ? what.segments->first_segment : 0;
    const std::size_t count = what.segments && host ? what.segments->segments : 0;
    for (std::size_t at = first; at < first + count && at < stored->segments.size(); ++at) {
      const auto& handle = stored->segments[at].handle;
      if (handle && std::holds_alternative<Fd>(*handle)) views.push_back(std::get<Fd>(*handle));
    }
    if (what.manifest) views.push_back(stored->manifest);
    return views;
  };
}

void send_reserved(Core& core, Session& session, const Reserving& what) {
  fb::ReservedT answer;
  answer.load = static_cast<std::uint64_t>(what.load);
  if (const StoredEntry* stored = core.store().find(what.load); stored != nullptr) {
    for (const StoredSegment& segment : stored->segments) answer.bytes += segment.bytes;
  }
  session.send(what.request, answer, reserved_descriptors(core.store(), what));
}

void keep(Core& core, StoredEntry& stored, const Reserving& what, std::vector<Fd> descriptors) {
  if (what.manifest) {
    std::vector<Fd> former;
    if (stored.manifest) former.push_back(std::move(stored.manifest));
    if (!former.empty()) core.dispose(std::move(former));
    stored.manifest = std::move(descriptors.back());
    stored.manifest_bytes = what.manifest_bytes;
    descriptors.pop_back();
  }
  if (!what.segments) return;
  std::size_t at = what.segments->first_segment;
  for (Fd& descriptor : descriptors) stored.segments.at(at++).handle = std::move(descriptor);
}

// A load that has nothing left is none that the catalog will ask to be given back.
void reserve_failed(Core& core, StoredEntry& stored, const Reserving& what) {
  if (!what.segments) return;
  stored.segments.resize(what.segments->first_segment);
  core.catalog().reserve_failed(what.load, *what.segments, core.now());
  if (stored.segments.empty() && !stored.given_back) core.dispose(core.store().take(what.load));
}

// The helper's answer. The session, the load, or both may be over by now.
void reserve_answered(Core& core, const Reserving& what, Result<HelperClient::Done> done) {
  StoredEntry& stored = *core.store().find(what.load);  // kept by the job that this ends
  const std::size_t segments =
      what.segments && stored.transport == memory::Transport::host_fd ? what.segments->segments : 0;
  if (done && done->descriptors.size() != segments + (what.manifest ? 1 : 0)) {
    core.dispose(std::move(done->descriptors));
    done = fail(Code::internal, "the helper answered with another number of descriptors");
  }
  kill_point("daemon.reserved");
  Session* session = core.session(what.session);
  if (done) {
    keep(core, stored, what, std::move(done->descriptors));
    if (session != nullptr) send_reserved(core, *session, what);
  } else {
    reserve_failed(core, stored, what);
    if (session != nullptr) session->send_failure(what.request, done.error());
  }
  core.job_over(what.load);
  core.settle();
}

Result<> check_reserve(Call& call, const fb::ReserveT& message, const StoredEntry* stored) {
  if (stored != nullptr && stored->jobs > 0) {
    return fail(Code::busy, "the load's last request is still being worked on");
  }
  if (message.segments.empty() && (stored == nullptr || message.manifest_bytes == 0)) {
    return fail(Code::invalid_argument,
                "nothing to reserve: segments come first, then or with them the manifest");
  }
  if (message.manifest_bytes > manifest::kMaxManifestBytes) {
    return fail(Code::invalid_argument, "a manifest of {}; it has {} at most",
                format_bytes(message.manifest_bytes), format_bytes(manifest::kMaxManifestBytes));
  }
  return call.core.room_for_descriptors(2 * (message.segments.size() + 1));
}

// The places of the new segments in the store.
void make_places(Core& core, const Reserving& what, memory::Transport transport) {
  Store& store = core.store();
  StoredEntry* stored = store.find(what.load);
  if (stored == nullptr) {
    StoredEntry fresh;
    fresh.transport = transport;
    fresh.owner = what.session;
    stored = &store.add(what.load, std::move(fresh));
  }
  for (const std::uint64_t bytes : what.sizes) stored->segments.push_back({bytes, 0, {}});
}

// There is room: host memory and the manifest come from the helper.
void make_memory(Core& core, Session& session, const Load& granted, const Reserving& what) {
  if (what.segments) {
    make_places(core, what, granted.transport);
    core.holds().want(granted.device);
  }
  const bool host = granted.transport == memory::Transport::host_fd;
  const std::vector<std::uint64_t> none;
  const auto& sizes = host ? what.sizes : none;
  if (sizes.empty() && !what.manifest) {
    send_reserved(core, session, what);
    return;
  }
  ++core.store().find(what.load)->jobs;
  core.helper().reserve(sizes, what.manifest_bytes, [&core, what](Result<HelperClient::Done> done) {
    reserve_answered(core, what, std::move(done));
  });
}

// What a GPU's loader finds free, and what is ours already: no more can ever be ours, as long as
// others keep what they have.
std::uint64_t capacity_of(const catalog::Catalog& catalog, const fb::BeginT& message) {
  if (message.free_bytes == 0 || message.device == "cpu") return 0;
  const auto devices = catalog.devices();
  const auto known = std::ranges::find(devices, message.device, &catalog::DeviceStatus::device);
  const std::uint64_t ours = known == devices.end() ? 0 : known->used_bytes();
  return message.free_bytes > UINT64_MAX - ours ? 0 : message.free_bytes + ours;
}

Result<> check_address(const fb::BeginT& message) {
  if (message.address == 0) return {};
  if (message.address % memory::kAddressAlignment == 0 &&
      message.address <= memory::kHighestAddress)
    return {};
  return fail(Code::invalid_argument, "the address {:#x} is no multiple of {}, or past {:#x}",
              message.address, format_bytes(memory::kAddressAlignment), memory::kHighestAddress);
}

}  // namespace

Result<> handle(Call& call, const fb::BeginT& message) {
  TRY(check_address(message));
  const auto transport = TRY(transport_for(message.device, message.transport));
  const auto now = call.core.now();
  catalog::BeginRequest wanted;
  wanted.name = message.name;
  wanted.form = message.form;
  wanted.device = message.device;
  wanted.fingerprint = message.fingerprint;
  wanted.aliases = message.aliases;
  wanted.structure = message.structure;
  wanted.source = message.source;
  wanted.publisher_uid = call.session.peer().uid;
  wanted.total_bytes = message.total_bytes;
  wanted.capacity_bytes = capacity_of(call.core.catalog(), message);
  wanted.address = message.address;
  wanted.rank = message.rank;
  wanted.world = message.world == 0 ? 1 : message.world;
  wanted.transport = static_cast<std::uint8_t>(transport);
  wanted.replace = message.replace;
  wanted.wait = message.wait;
  if (message.wait) wanted.deadline = deadline_after(message.timeout_ms, now);
  const auto decision = TRY(call.core.catalog().begin(
      call.session.id(), catalog::RequestId{call.request}, std::move(wanted), now));
  if (!decision) {
    call.core.client_of(call.session).begins[call.request] = {transport, message.device, false};
    return {};
  }
  if (const auto* grant = std::get_if<catalog::Granted>(&*decision)) {
    call.core.granted(call.session, call.request, grant->load, {transport, message.device, false});
    return {};
  }
  fb::ResidentT answer;
  answer.entry = to_wire_ptr(std::get<catalog::Resident>(*decision).entry);
  call.session.send(call.request, answer);
  return {};
}

Result<> handle(Call& call, const fb::ReserveT& message) {
  const EntryId load{message.load};
  const Load* granted = TRY(call.core.load_of(call.session, load));
  TRY(check_reserve(call, message, call.core.store().find(load)));
  Reserving what;
  what.session = call.session.id();
  what.request = call.request;
  what.load = load;
  what.manifest = message.manifest_bytes > 0;
  what.manifest_bytes = message.manifest_bytes;
  what.sizes = message.segments;
  if (!what.sizes.empty()) {
    const auto now = call.core.now();
    what.segments = TRY(call.core.catalog().reserve(what.session, catalog::RequestId{call.request},
                                                    {load, what.sizes, {}}, now));
    if (!what.segments) {
      call.core.client_of(call.session).reserves[call.request] = std::move(what);
      return {};
    }
  }
  make_memory(call.core, call.session, *granted, what);
  return {};
}

void room_made(Core& core, Session& session, std::uint64_t request,
               catalog::Reservation reservation) {
  auto& reserves = core.client_of(session).reserves;
  const auto found = reserves.find(request);
  if (found == reserves.end()) return;
  Reserving what = std::move(found->second);
  reserves.erase(found);
  what.segments = std::move(reservation);
  const auto granted = core.load_of(session, what.load);
  if (!granted) return session.send_failure(request, granted.error());
  make_memory(core, session, **granted, what);
}

Result<> handle(Call& call, const fb::SupplyT& message) {
  const EntryId load{message.load};
  const Load* granted = TRY(call.core.load_of(call.session, load));
  if (granted->transport == memory::Transport::host_fd) {
    return fail(Code::invalid_argument,
                "host memory is the daemon's: it is reserved, not supplied");
  }
  StoredEntry* stored = call.core.store().find(load);
  if (stored == nullptr || message.index >= stored->segments.size()) {
    return fail(Code::invalid_argument, "segment {} has not been reserved", message.index);
  }
  StoredSegment& segment = stored->segments[message.index];
  if (!message.segment || message.segment->bytes != segment.bytes) {
    return fail(Code::invalid_argument, "segment {} was reserved with {} bytes, {} are supplied",
                message.index, format_count(segment.bytes),
                format_count(message.segment ? message.segment->bytes : 0));
  }
  if (segment.handle) {
    return fail(Code::invalid_argument, "segment {} has been supplied already", message.index);
  }
  segment.handle = TRY(to_handle(*message.segment, granted->transport, call.descriptors));
  segment.address = message.segment->address;
  call.session.send(call.request, fb::DoneT());
  return {};
}

// No answer, whatever comes of it: the next request tells.
Result<> handle(Call& call, const fb::ReportProgressT& message) {
  static_cast<void>(call.core.catalog().progress(call.session.id(), EntryId{message.load},
                                                 message.done_bytes, message.total_bytes,
                                                 call.core.now()));
  return {};
}

Result<> handle(Call& call, const fb::AbandonT& message) {
  const EntryId load{message.load};
  TRY(call.core.catalog().abandon(call.session.id(), load, call.core.now()));
  call.core.load_over(call.session, load);
  report(Level::info, "load {} of pid {} was given up: {}: {}", message.load,
         call.session.peer().pid, name_of(code_of(message.code)), message.message);
  call.session.send(call.request, fb::DoneT());
  return {};
}

}  // namespace wc::daemon
