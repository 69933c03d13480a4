#include "client/attachment.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <sys/mman.h>

#include "base/units.hpp"
#include "client/expectation.hpp"
#include "client/handles.hpp"
#include "client/operations.hpp"
#include "memory/host/seal.hpp"

namespace wc::client {

using wire::fb::AttachedT;

struct Attachment::Parts {
  std::shared_ptr<Connection> connection;
  AttachedT attached;
  std::vector<Fd> descriptors;  // until they are mapped
  bool leased = true;
  std::optional<Error> refused;            // why it could not be mapped: told with its end
  bool importing = false;                  // the segments: the manifest and all else was in order
  std::shared_ptr<memory::Device> device;  // goes after its views
  memory::Access access = memory::Access::shared_read;
  Mapping manifest_bytes;
  std::optional<manifest::Manifest> manifest;
  std::vector<std::unique_ptr<memory::View>> views;
  std::vector<std::uint64_t> addresses;
};

namespace {

std::string describe(const AttachedT& attached) {
  return attached.entry == nullptr ? "the entry" : format("\"{}\"", attached.entry->name);
}

// What the daemon handed over, counted against itself, before any of it is touched.
Result<> check_shape(const AttachedT& attached, std::size_t descriptors) {
  if (attached.entry == nullptr) return fail(Code::corrupt, "the daemon attached no entry");
  if (attached.segments.size() > wire::kMaxSegments) {
    return fail(Code::corrupt, "an entry of {} segments; it has {} at most",
                attached.segments.size(), wire::kMaxSegments);
  }
  if (attached.manifest_bytes == 0 || attached.manifest_bytes > manifest::kMaxManifestBytes) {
    return fail(Code::corrupt, "a manifest of {} bytes (1 to {})",
                format_count(attached.manifest_bytes), format_count(manifest::kMaxManifestBytes));
  }
  const auto crosses = [](const auto& segment) {
    return segment->handle.type == wire::fb::Handle::DescriptorHandle;
  };
  const auto due = 1 + static_cast<std::size_t>(std::ranges::count_if(attached.segments, crosses));
  if (descriptors == due) return {};
  return fail(Code::corrupt, "{} descriptors came where {} are due", descriptors, due);
}

// Whoever filled the memory could put anything into it.
Result<> check_publisher(const AttachedT& attached, const Connection& connection) {
  const std::uint32_t uid = attached.entry->publisher_uid;
  if (connection.trusts(uid)) return {};
  return fail(Code::denied,
              "it was published by uid {}, who is neither root, nor this user, nor the daemon's, "
              "nor trusted (to trust it: WEIGHTCACHE_TRUST={})",
              uid, uid);
}

// Not populated: a reader's check touches half of it. On a boundary of 2 MiB a manifest that lies
// in huge pages is mapped by them, and 36,000 tensors cost two faults.
Result<Mapping> map_manifest(FdView memfd, std::uint64_t bytes) {
  TRY(memory::check_sealed(memfd, bytes));
  return Mapping::map(memfd, {.bytes = bytes,
                              .protection = PROT_READ,
                              .flags = MAP_SHARED,
                              .alignment = bytes >= kHugePageBytes ? kHugePageBytes : 0});
}

// What the message says against what the manifest says.
Result<> check_agreement(const AttachedT& attached, const manifest::Manifest& manifest) {
  const auto segments = manifest.segments();
  if (segments.size() != attached.segments.size()) {
    return fail(Code::corrupt, "the manifest has {} segments, the daemon handed over {}",
                segments.size(), attached.segments.size());
  }
  for (std::uint32_t at = 0; at < segments.size(); ++at) {
    if (segments[at].bytes == attached.segments[at]->bytes) continue;
    return fail(Code::corrupt, "segment {} has {} bytes in the manifest, {} in the answer", at,
                format_count(segments[at].bytes), format_count(attached.segments[at]->bytes));
  }
  if (manifest.fingerprint() == attached.entry->fingerprint) return {};
  return fail(Code::corrupt, "the manifest is of the fingerprint \"{}\", the entry of \"{}\"",
              manifest.fingerprint(), attached.entry->fingerprint);
}

// What another library's publisher shares by a transport that this one does not speak.
Result<> check_transport(const wire::fb::EntryInfoT& entry, const memory::DeviceInfo& device) {
  const auto transport = static_cast<memory::Transport>(entry.transport);
  const auto& known = device.transports;
  if (transport != memory::Transport::torch_ipc ||
      std::ranges::find(known, transport) != known.end())
    return {};
  return fail(Code::unsupported,
              "its publisher shares it by {}, which this library does not map: use the publisher's "
              "own framework",
              name_of(transport));
}

Result<> import_segments(Attachment::Parts& parts) {
  parts.importing = true;
  const auto segments = parts.manifest->segments();
  std::size_t next_descriptor = 1;
  for (std::uint32_t at = 0; at < segments.size(); ++at) {
    auto& info = *parts.attached.segments[at];
    Fd descriptor;
    if (info.handle.type == wire::fb::Handle::DescriptorHandle)
      descriptor = std::move(parts.descriptors[next_descriptor++]);
    auto handle = TRY(handle_from(info.handle, std::move(descriptor)));
    auto view = parts.device->import(
        std::move(handle),
        {.bytes = info.bytes, .access = parts.access, .address = segments[at].address});
    if (!view) {
      return Failure(std::move(view).error().within(
          format("import segment {} ({}): ", at, format_bytes(info.bytes))));
    }
    parts.addresses.push_back((*view)->address());
    parts.views.push_back(*std::move(view));
  }
  return {};
}

Result<> map_parts(Attachment::Parts& parts, const AttachOptions& options) {
  TRY(check_shape(parts.attached, parts.descriptors.size()));
  TRY(check_publisher(parts.attached, *parts.connection));
  auto mapped = map_manifest(parts.descriptors.front(), parts.attached.manifest_bytes);
  if (!mapped) return Failure(std::move(mapped).error().within("manifest: "));
  parts.manifest_bytes = *std::move(mapped);
  auto checked = manifest::Manifest::check(parts.manifest_bytes.bytes(), {.full = false});
  if (!checked) return Failure(std::move(checked).error().within("manifest: "));
  parts.manifest = *checked;
  TRY(check_agreement(parts.attached, *parts.manifest));
  TRY(check_expectation(options.expect,
                        {parts.manifest->fingerprint(), parts.manifest->fingerprint_json()}));
  auto device = options.device(parts.attached.entry->device);
  if (!device) {
    // The entry is there; it is this process that lacks the device.
    Error error = std::move(device).error();
    if (error.code == Code::not_found) error.code = Code::unsupported;
    return Failure(std::move(error));
  }
  parts.device = *std::move(device);
  TRY(check_transport(*parts.attached.entry, parts.device->info()));
  TRY(import_segments(parts));
  parts.descriptors.clear();
  return {};
}

// As the daemon is told. That a segment is not what it says, it acts upon; whatever else this
// library finds wrong may be a matter of versions.
Error refusal_of(const Attachment::Parts& parts, Error error) {
  if (error.code == Code::corrupt && !parts.importing) error.code = Code::unsupported;
  return error;
}

// Between rounds of an entry that comes and is gone again.
constexpr std::chrono::nanoseconds kRoundPause = std::chrono::milliseconds(10);

// One request; while the entry is not there yet, and the caller waits, the wait and then another.
Result<Answer> ask(Connection& connection, const wire::fb::SelectorT& selector,
                   const AttachOptions& options) {
  wire::fb::AttachT request;
  request.selector = std::make_unique<wire::fb::SelectorT>(selector);
  const CallOptions call = {.cancellation = options.cancellation,
                            .descriptors_due = wire::kMaxSegments + 1};
  const auto patience = Patience::of(options.wait, options.cancellation);
  bool waited = false;
  for (;;) {
    auto answer = TRY(connection.channel().exchange(request, call));
    const auto* failure = answer.message->body_as_Failure();
    if (failure == nullptr) return answer;
    Error error = wire::to_error(*failure);
    const bool may_come = error.code == Code::not_found || error.code == Code::busy;
    if (!may_come || options.wait == std::chrono::nanoseconds(0) || patience.over())
      return Failure(std::move(error));
    const WaitOptions wait = {.limit = patience.left(),
                              .on_progress = options.on_progress,
                              .cancellation = options.cancellation};
    (void)TRY(wait_for_entry(connection, selector, wait));
    if (std::exchange(waited, true)) (void)TRY(pause_for(kRoundPause, patience));
  }
}

}  // namespace

DeviceFinder always(std::shared_ptr<memory::Device> device) {
  return [device = std::move(device)](std::string_view) { return device; };
}

Attachment::Attachment(Parts parts) : parts_(std::make_unique<Parts>(std::move(parts))) {}

Attachment::~Attachment() {
  unmap();
  if (!parts_->leased || parts_->connection->forked()) return;
  wire::fb::DetachT request;
  request.lease = parts_->attached.lease;
  if (parts_->refused) {
    request.code = static_cast<int>(parts_->refused->code);
    request.message = wire::clipped(parts_->refused->message, wire::kMaxTextBytes);
  }
  // What can't be sent now ends with the connection.
  (void)parts_->connection->channel().post(request, kLastWords);
}

const wire::fb::EntryInfoT& Attachment::entry() const { return *parts_->attached.entry; }
const manifest::Manifest& Attachment::manifest() const { return *parts_->manifest; }
std::uint64_t Attachment::segment_address(std::uint32_t index) const {
  return parts_->addresses[index];
}
std::uint64_t Attachment::segment_bytes(std::uint32_t index) const {
  return parts_->attached.segments[index]->bytes;
}
std::uint32_t Attachment::segment_count() const {
  return static_cast<std::uint32_t>(parts_->attached.segments.size());
}
std::vector<memory::View*> Attachment::views() const {
  std::vector<memory::View*> views;
  for (const auto& view : parts_->views) views.push_back(view.get());
  return views;
}
std::uint64_t Attachment::address_of(const manifest::TensorView& tensor) const {
  return parts_->addresses[tensor.segment] + tensor.offset;
}
std::uint64_t Attachment::lease() const { return parts_->attached.lease; }
std::span<const std::uint8_t> Attachment::ticket() const { return parts_->attached.ticket; }
const DaemonInfo& Attachment::daemon() const { return parts_->connection->daemon(); }
memory::Device& Attachment::device() const { return *parts_->device; }
memory::Access Attachment::access() const {
  return parts_->views.empty() ? parts_->access : parts_->views.front()->access();
}

void Attachment::unmap() {
  const auto host = static_cast<std::uint8_t>(memory::Transport::host_fd);
  const bool foreign =
      parts_->attached.entry == nullptr || parts_->attached.entry->transport != host;
  // A GPU's driver can't be used in a forked child, not even to unmap: its views go with the
  // process.
  if (foreign && parts_->connection->forked())
    for (auto& view : parts_->views) (void)view.release();
  parts_->views.clear();
  parts_->addresses.clear();
  parts_->manifest.reset();
  parts_->manifest_bytes.reset();
}

Result<> Attachment::detach() {
  unmap();
  if (!std::exchange(parts_->leased, false)) return {};
  wire::fb::DetachT request;
  request.lease = parts_->attached.lease;
  const auto done = parts_->connection->call<wire::fb::DoneT>(request);
  if (done || done.error().code == Code::disconnected) return {};
  return Failure(done.error());
}

Result<std::unique_ptr<Attachment>> attach(const std::shared_ptr<Connection>& connection,
                                           const wire::fb::SelectorT& selector,
                                           const AttachOptions& options) {
  if (!options.device || options.access == memory::Access::write)
    return fail(Code::invalid_argument, "attach needs a device, and is for reading");
  auto answer = TRY(ask(*connection, selector, options));
  Attachment::Parts parts;
  parts.connection = connection;
  parts.attached = TRY(wire::body_as<AttachedT>(*answer.message));
  parts.descriptors = std::move(answer.descriptors);
  parts.access = options.access;
  auto mapped = map_parts(parts, options);
  if (!mapped) parts.refused = refusal_of(parts, mapped.error());
  std::string name = mapped ? std::string() : describe(parts.attached);
  // Made also where mapping failed: its end gives the lease back.
  auto attachment = std::make_unique<Attachment>(std::move(parts));
  if (!mapped) return Failure(std::move(mapped).error().within(format("cannot attach {}: ", name)));
  return attachment;
}

}  // namespace wc::client
