#include "client/publication.hpp"

#include <algorithm>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

#include "base/units.hpp"
#include "client/handles.hpp"
#include "client/operations.hpp"
#include "manifest/limits.hpp"
#include "memory/host/seal.hpp"

namespace wc::client {
namespace {

using namespace std::chrono_literals;
using memory::Transport;

constexpr std::chrono::nanoseconds kReportInterval = 100ms;
// Host memory is reserved page by page before the answer comes; the slowest that was ever seen.
constexpr std::uint64_t kSlowestBytesPerSecond = std::uint64_t{128} << 20;
constexpr std::chrono::nanoseconds kPublishTime = 60s;  // sealing and checking; beside the timeout

std::chrono::nanoseconds time_for(std::uint64_t bytes, std::chrono::nanoseconds timeout) {
  return timeout + std::chrono::seconds(bytes / kSlowestBytesPerSecond);
}

std::uint64_t sum_of(std::span<const std::uint64_t> sizes) {
  std::uint64_t sum = 0;
  for (const std::uint64_t size : sizes) sum += size;  // 240 of at most 2^50
  return sum;
}

Result<> write_whole(FdView memfd, std::span<const std::byte> bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const auto rest = bytes.subspan(done);
    const ssize_t count = ::pwrite(memfd.get(), rest.data(), rest.size(), static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_errno("pwrite of the manifest ({})", format_bytes(bytes.size()));
    done += static_cast<std::size_t>(count);
  }
  return {};
}

Result<Transport> choose_transport(const BeginOptions& options) {
  const auto& info = options.device->info();
  const auto& known = info.transports;
  if (known.empty()) return fail(Code::unsupported, "\"{}\" has no transport", info.uuid);
  if (!options.transport) return known.front();
  if (std::ranges::find(known, *options.transport) != known.end()) return *options.transport;
  std::string names;
  for (const Transport one : known)
    names += format("{}{}", names.empty() ? "" : ", ", name_of(one));
  return fail(Code::unsupported, "\"{}\" can't do {}: it can do {}", info.uuid,
              name_of(*options.transport), names);
}

wire::fb::BeginT request_of(const BeginOptions& options, Transport transport) {
  wire::fb::BeginT request;
  request.name = options.name;
  request.form = options.form;
  request.rank = options.rank;
  request.world = options.world;
  request.device = options.device->info().uuid;
  request.transport = static_cast<std::uint8_t>(transport);
  request.fingerprint = options.fingerprint;
  request.aliases = options.aliases;
  request.structure = options.structure;
  request.replace = options.replace;
  request.wait = options.wait;
  request.timeout_ms = wire_timeout(options.wait_limit);
  request.total_bytes = options.total_bytes;
  request.address = options.address;
  request.source = options.source;
  return request;
}

}  // namespace

Result<Begun> begin(const std::shared_ptr<Connection>& connection, const BeginOptions& options) {
  if (!options.device) return fail(Code::invalid_argument, "a publication needs a device");
  const Transport transport = TRY(choose_transport(options));
  auto request = request_of(options, transport);
  // What others have of the device no budget knows of.
  if (transport != Transport::host_fd) request.free_bytes = TRY(options.device->free_bytes());
  CallOptions call;
  if (options.wait) call.timeout = beyond(options.wait_limit);
  call.cancellation = options.cancellation;
  call.on_event = events_to(options.on_progress);
  const auto answer = TRY(connection->channel().exchange(request, call));
  if (answer.message->body_type() == wire::fb::Body::Resident) {
    const auto resident = TRY(wire::body_as<wire::fb::ResidentT>(*answer.message));
    if (resident.entry == nullptr) return fail(Code::corrupt, "the daemon named no resident entry");
    return Begun(*resident.entry);
  }
  const auto granted = TRY(wire::body_as<wire::fb::GrantedT>(*answer.message));
  Publication::Parts parts = {.connection = connection,
                              .device = options.device,
                              .transport = transport,
                              .load = granted.load,
                              .address = options.address,
                              .cancellation = options.cancellation};
  return Begun(std::make_unique<Publication>(std::move(parts)));
}

Publication::Publication(Parts parts) : parts_(std::move(parts)) {}

Publication::~Publication() {
  give_up({Code::cancelled, "the publication was dropped", {}});
  if (!parts_.connection->forked()) return;
  // A GPU's driver can't be used in a forked child, not even to unmap; see Attachment::unmap().
  if (parts_.transport == Transport::host_fd) return;
  for (auto& view : views_) (void)view.release();
  for (auto& segment : segments_) (void)segment.release();
}

Result<> Publication::reserve(std::span<const std::uint64_t> sizes) {
  if (over_) return fail(Code::invalid_argument, "the publication is over");
  if (sizes.empty() || std::ranges::find(sizes, 0U) != sizes.end())
    return fail(Code::invalid_argument, "reserve needs sizes, none of them 0");
  const std::size_t count = views_.size() + sizes.size();
  if (count > wire::kMaxSegments) {
    return fail(Code::invalid_argument, "{} segments ({} at most)", format_count(count),
                wire::kMaxSegments);
  }
  const std::uint64_t granularity =
      std::max<std::uint64_t>(1, parts_.device->info().granularity_bytes);
  std::vector<std::uint64_t> rounded;
  for (const std::uint64_t size : sizes) {
    if (size > manifest::kMaxSegmentBytes - granularity)
      return fail(Code::invalid_argument, "a segment of {} bytes", format_count(size));
    rounded.push_back((size + granularity - 1) / granularity * granularity);
  }
  return parts_.transport == Transport::host_fd ? reserve_from_daemon(rounded) : supply(rounded);
}

Result<Answer> Publication::ask_for_memory(std::span<const std::uint64_t> sizes,
                                           std::uint64_t manifest_bytes) {
  wire::fb::ReserveT request;
  request.load = parts_.load;
  request.segments.assign(sizes.begin(), sizes.end());
  request.manifest_bytes = manifest_bytes;
  const bool host = parts_.transport == Transport::host_fd;
  const std::size_t due = (host ? sizes.size() : 0) + (manifest_bytes > 0 ? 1 : 0);
  const CallOptions call = {
      .timeout = time_for(sum_of(sizes) + manifest_bytes, parts_.connection->channel().timeout()),
      .cancellation = parts_.cancellation,
      .descriptors_due = due};
  auto answer = TRY(parts_.connection->channel().exchange(request, call));
  (void)TRY(wire::body_as<wire::fb::ReservedT>(*answer.message));
  if (answer.descriptors.size() == due) return answer;
  return fail(Code::corrupt, "{} descriptors came with Reserved where {} are due",
              answer.descriptors.size(), due);
}

Result<> Publication::reserve_from_daemon(std::span<const std::uint64_t> sizes) {
  auto answer = TRY(ask_for_memory(sizes, 0));
  std::vector<std::unique_ptr<memory::View>> views;
  for (std::size_t at = 0; at < sizes.size(); ++at) {
    const std::uint64_t address = TRY(next_address(sizes[at]));
    const memory::ImportOptions options = {
        .bytes = sizes[at], .access = memory::Access::write, .address = address};
    auto view =
        TRY(parts_.device->import(memory::Handle(std::move(answer.descriptors[at])), options));
    // A child forked meanwhile must not have a writable mapping: the segment could not be sealed.
    ::madvise(reinterpret_cast<void*>(view->address()), sizes[at], MADV_DONTFORK);
    views.push_back(std::move(view));
  }
  for (auto& view : views) add_view(std::move(view));
  return {};
}

Result<> Publication::supply(std::span<const std::uint64_t> sizes) {
  (void)TRY(ask_for_memory(sizes, 0));
  for (const std::uint64_t bytes : sizes) {
    auto supplied = supply_one(bytes);
    if (supplied) continue;
    Error error = std::move(supplied).error();
    if (error.code == Code::exhausted) error.message += what_could_go();
    return wc::Failure(std::move(error));
  }
  return {};
}

// The daemon made what room it could; the device is full all the same, since others use it too.
std::string Publication::what_could_go() const {
  wire::fb::SelectorT on_device;
  on_device.device = parts_.device->info().uuid;
  const auto entries = list_entries(*parts_.connection, on_device);
  if (!entries) return format("; what could be evicted can't be told: {}", entries.error().message);
  std::string text;
  for (const auto& entry : *entries) {
    const bool idle =
        entry.leases == 0 && !entry.pinned &&
        (entry.state == wire::fb::State::published || entry.state == wire::fb::State::failed);
    if (idle) {
      text += format("{}\"{}\" ({})", text.empty() ? "; nobody uses " : ", ", entry.name,
                     format_bytes(entry.bytes));
    }
  }
  return text.empty() ? "; nothing of the cache's can be evicted" : text + ": evict it";
}

// Every process is to have the same, this one too.
Result<std::uint64_t> Publication::next_address(std::uint64_t bytes) {
  using memory::kAddressStep;
  const std::uint64_t here = parts_.address;
  if (here == 0) return 0U;
  if (here > memory::kHighestAddress || bytes > memory::kHighestAddress - here) {
    return fail(Code::invalid_argument,
                "a segment of {} at the fixed address {:#x} ends past {:#x}", format_bytes(bytes),
                here, memory::kHighestAddress);
  }
  parts_.address = here + (bytes + kAddressStep - 1) / kAddressStep * kAddressStep;
  return here;
}

Result<> Publication::supply_one(std::uint64_t bytes) {
  auto segment = TRY(parts_.device->create(bytes));
  const std::uint64_t address = TRY(next_address(segment->bytes()));
  auto view = TRY(parts_.device->map_at(*segment, address));
  const auto handle = TRY(segment->export_handle());
  auto leaving = outgoing(handle);
  wire::fb::SupplyT request;
  request.load = parts_.load;
  request.index = static_cast<std::uint16_t>(views_.size());
  request.segment = std::make_unique<wire::fb::SegmentInfoT>();
  request.segment->bytes = segment->bytes();
  request.segment->address = address;
  request.segment->handle = std::move(leaving.handle);
  CallOptions call;
  if (leaving.descriptor) call.descriptors = std::span(&leaving.descriptor, 1);
  (void)TRY(parts_.connection->call<wire::fb::DoneT>(request, call));
  segments_.push_back(std::move(segment));
  add_view(std::move(view));
  return {};
}

void Publication::add_view(std::unique_ptr<memory::View> view) {
  view_pointers_.push_back(view.get());
  views_.push_back(std::move(view));
}

void Publication::report_progress(std::uint64_t done_bytes, std::uint64_t total_bytes) {
  const std::int64_t now = Clock::now().time_since_epoch().count();
  std::int64_t before = reported_ns_.load();
  if (before != 0 && now - before < kReportInterval.count()) return;
  if (!reported_ns_.compare_exchange_strong(before, now)) return;
  wire::fb::ReportProgressT report;
  report.load = parts_.load;
  report.done_bytes = done_bytes;
  report.total_bytes = total_bytes;
  (void)parts_.connection->channel().post(report);  // the next one says more anyway
}

Result<> Publication::end_writing() {
  for (auto& view : views_) {
    TRY(view->make_read_only());
  }
  view_pointers_.clear();  // nobody writes through them any more
  return {};
}

Result<> Publication::hand_over_manifest(std::span<const std::byte> manifest) {
  const auto answer = TRY(ask_for_memory({}, manifest.size()));
  TRY(memory::check_writable(answer.descriptors.front(), manifest.size()));
  return write_whole(answer.descriptors.front(), manifest);
}

Result<wire::fb::PublishedT> Publication::publish_steps(std::span<const std::byte> manifest,
                                                        const PublishOptions& options) {
  TRY(end_writing());
  TRY(hand_over_manifest(manifest));
  wire::fb::PublishT request;
  request.load = parts_.load;
  request.fingerprint = options.fingerprint;
  request.aliases = options.aliases;
  CallOptions call;
  call.timeout = options.timeout;
  if (call.timeout == 0ns) call.timeout = kPublishTime + parts_.connection->channel().timeout();
  auto published = TRY(parts_.connection->call<wire::fb::PublishedT>(request, call));
  if (published.entry == nullptr) return fail(Code::corrupt, "the daemon published no entry");
  return published;
}

Result<wire::fb::PublishedT> Publication::publish(std::span<const std::byte> manifest,
                                                  const PublishOptions& options) {
  if (over_) return fail(Code::invalid_argument, "the publication is over");
  auto published = publish_steps(manifest, options);
  if (published) {
    over_ = true;
  } else if (!std::exchange(over_, true) && !parts_.connection->forked()) {
    // The views stay until destruction: what lies in them may be the caller's only copy.
    view_pointers_.clear();
    (void)parts_.connection->channel().post(abandon_for(published.error()), kLastWords);
  }
  return published;
}

wire::fb::AbandonT Publication::abandon_for(const Error& reason) const {
  wire::fb::AbandonT request;
  request.load = parts_.load;
  request.code = static_cast<int>(reason.code);
  request.message = wire::clipped(reason.message, wire::kMaxTextBytes);
  return request;
}

// The memory may not be given back while it is mapped here.
void Publication::unmap() {
  view_pointers_.clear();
  views_.clear();
}

// Without waiting. Where the daemon has ended the load already, it answers so to nobody.
void Publication::give_up(const Error& reason) {
  if (std::exchange(over_, true)) return;
  if (parts_.connection->forked()) return;
  unmap();
  (void)parts_.connection->channel().post(abandon_for(reason), kLastWords);
}

Result<> Publication::abandon(const Error& reason) {
  if (std::exchange(over_, true)) return {};
  unmap();
  const auto done = parts_.connection->call<wire::fb::DoneT>(abandon_for(reason));
  if (done || done.error().code == Code::disconnected) return {};
  return wc::Failure(done.error());
}

}  // namespace wc::client
