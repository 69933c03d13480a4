#include "api/publication.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "api/process.hpp"
#include "base/units.hpp"

namespace wc::api {
namespace {

// What a writer stages at once, on a device that is not this process's own memory.
constexpr std::uint64_t kWriteBytes = std::uint64_t{4} << 20;

bool on_host(const client::Publication& publication) {
  return publication.transport() == memory::Transport::host_fd;
}

Result<> check_place(const client::Publication& publication, const Place& to, std::uint64_t bytes) {
  const auto views = publication.views();
  if (to.segment >= views.size())
    return fail(Code::invalid_argument, "there is no segment {}: {} are reserved", to.segment,
                views.size());
  const std::uint64_t size = views[to.segment]->bytes();
  if (to.offset > size || bytes > size - to.offset)
    return fail(Code::invalid_argument, "{} bytes at {} are past the end of segment {} ({} bytes)",
                format_count(bytes), format_count(to.offset), to.segment, format_count(size));
  return {};
}

Result<std::unique_ptr<memory::Writer>> take_writer(wc_publication& publication) {
  {
    const std::lock_guard lock(publication.mutex);
    if (!publication.idle_writers.empty()) {
      auto writer = std::move(publication.idle_writers.back());
      publication.idle_writers.pop_back();
      return writer;
    }
  }
  client::Publication& inner = *publication.inner;
  return inner.device().writer(inner.views(), kWriteBytes);
}

Result<> write_staged(memory::Writer& writer, const Place& to, std::span<const std::byte> bytes) {
  for (std::uint64_t done = 0; done < bytes.size();) {
    const auto piece =
        bytes.subspan(done, std::min<std::uint64_t>(kWriteBytes, bytes.size() - done));
    const auto staged = TRY(writer.stage(piece.size()));
    std::span<const std::byte> block = piece;
    if (!staged.empty()) {
      std::memcpy(staged.data(), piece.data(), piece.size());
      block = staged.first(piece.size());
    }
    memory::Run run;
    run.segment = to.segment;
    run.segment_offset = to.offset + done;
    run.bytes = piece.size();
    TRY(writer.copy_in(block, std::span(&run, 1)));
    done += piece.size();
  }
  return writer.finish();
}

void drop_writers(wc_publication& publication) {
  const std::lock_guard lock(publication.mutex);
  publication.idle_writers.clear();
}

}  // namespace

Result<ReservedSegment> reserve(wc_publication& publication, std::uint64_t bytes) {
  client::Publication& inner = *publication.inner;
  drop_writers(publication);  // they know the former segments only
  TRY(inner.reserve(std::span(&bytes, 1)));
  const memory::View& view = *inner.views().back();
  manifest::SegmentOptions segment;
  segment.bytes = view.bytes();
  segment.used_bytes = bytes;
  if (inner.fixed_addresses()) segment.address = view.address();
  segment.flags = inner.device().info().segment_flags;
  ReservedSegment reserved;
  reserved.index = TRY(publication.builder.add_segment(segment));
  reserved.address = reinterpret_cast<void*>(static_cast<std::uintptr_t>(view.address()));
  return reserved;
}

Result<> add_tensor(wc_publication& publication, const manifest::TensorOptions& tensor) {
  std::string name(tensor.name);
  if (publication.names.contains(name))
    return fail(Code::invalid_argument, "tensor \"{}\" was added before", name);
  TRY(publication.builder.add_tensor(tensor));
  publication.names.insert(std::move(name));
  return {};
}

Result<> write(wc_publication& publication, const Place& to, std::span<const std::byte> bytes) {
  const client::Publication& inner = *publication.inner;
  TRY(check_place(inner, to, bytes.size()));
  if (bytes.empty()) return {};
  if (on_host(inner)) {
    const std::uint64_t address = inner.views()[to.segment]->address() + to.offset;
    std::memcpy(reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)), bytes.data(),
                bytes.size());
    return {};
  }
  auto writer = TRY(take_writer(publication));
  TRY(write_staged(*writer, to, bytes));
  const std::lock_guard lock(publication.mutex);
  publication.idle_writers.push_back(std::move(writer));
  return {};
}

Result<wire::fb::PublishedT> publish(wc_publication& publication) {
  drop_writers(publication);
  publication.over = true;
  manifest::ProvenanceOptions provenance = publication.provenance;
  provenance.published_unix_ns = unix_now_ns();
  provenance.took_ns = (std::chrono::steady_clock::now() - publication.start).count();
  publication.builder.set_provenance(std::move(provenance));
  // A failure abandons nothing yet: what was written can be read until the publication is freed.
  const auto bytes = TRY(publication.builder.finish());
  client::PublishOptions options;
  options.fingerprint = publication.fingerprint;
  return publication.inner->publish(bytes, options);
}

}  // namespace wc::api
