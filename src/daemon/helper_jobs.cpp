#include "daemon/helper_jobs.hpp"

#include <memory>
#include <numeric>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

#include "base/kill_point.hpp"
#include "base/units.hpp"
#include "daemon/foreign.hpp"
#include "daemon/gpu_node.hpp"
#include "manifest/fingerprint.hpp"
#include "manifest/manifest.hpp"
#include "memory/host/reserve.hpp"
#include "memory/host/seal.hpp"

namespace wc::daemon {
namespace {

std::uint64_t total_of(const Job& job) {
  const auto sizes = job.sizes();
  return std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
}

// When memory runs out, this process is the one to go, not the daemon or an engine.
void offer_to_the_killer() {
  const Fd file(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  constexpr std::string_view kFirst = "1000";
  // Without it the job can still be done.
  if (file) static_cast<void>(::write(file.get(), kFirst.data(), kFirst.size()) == 4);
}

Result<std::vector<Fd>> reserve(const Job& job) {
  offer_to_the_killer();
  kill_point("helper.reserve");
  std::vector<Fd> reserved;
  for (const std::uint64_t bytes : job.sizes()) {
    Fd segment = TRY(memory::reserve_host(bytes));
    reserved.push_back(std::move(segment));
  }
  if (job.manifest_bytes > 0) {
    memory::ReserveOptions options;
    options.huge_pages = false;
    options.name = "weightcache-manifest";
    Fd manifest = TRY(memory::reserve_host(job.manifest_bytes, options));
    reserved.push_back(std::move(manifest));
  }
  kill_point("helper.reserved");
  return reserved;
}

Result<> check_segments(const manifest::Manifest& manifest, const Job& job) {
  const auto segments = manifest.segments();
  if (segments.size() != job.segments) {
    return fail(Code::corrupt, "the manifest has {} segments, the load reserved {}",
                segments.size(), job.segments);
  }
  for (std::uint32_t at = 0; at < segments.size(); ++at) {
    const std::uint64_t bytes = segments[at].bytes;
    if (bytes != job.bytes.at(at)) {
      return fail(Code::corrupt, "segment {} has {} bytes in the manifest, {} were reserved", at,
                  format_count(bytes), format_count(job.bytes.at(at)));
    }
  }
  return {};
}

// The source part alone, as a document of its own: what a name belongs to, whatever form and
// partition was made of it.
Result<std::string> source_digest_of(std::string_view fingerprint_json) {
  auto identity = TRY(manifest::parse_fingerprint(fingerprint_json));
  identity.form = {};
  identity.partition = {};
  return manifest::digest_of(identity);
}

Result<> check_manifest(FdView memfd, Job& job) {
  const Mapping mapping = TRY(memory::map_sealed(memfd, manifest::kMaxManifestBytes));
  const auto manifest = TRY(manifest::Manifest::check(mapping.bytes()));
  TRY(check_segments(manifest, job));
  const std::string_view wanted(job.fingerprint.data(), job.fingerprint.size());
  if (manifest.fingerprint() != wanted) {
    return fail(Code::mismatch, "the manifest's fingerprint is {}, the load is published as {}",
                manifest.fingerprint(), wanted);
  }
  const std::string source = TRY(source_digest_of(manifest.fingerprint_json()));
  source.copy(job.source_digest.data(), job.source_digest.size());
  job.tensors = manifest.tensor_count();
  job.manifest_bytes = mapping.size();
  return {};
}

// Segments of a device come without descriptors: there is only the manifest.
Result<std::vector<Fd>> seal(Job& job, std::vector<Fd> writable) {
  kill_point("helper.seal");
  const bool host = job.transport == memory::Transport::host_fd;
  const std::size_t segments = host ? job.segments : 0;
  if (writable.size() != segments + 1) {
    return fail(Code::internal, "{} descriptors to seal instead of {}", writable.size(),
                segments + 1);
  }
  std::vector<Fd> sealed;
  for (std::size_t at = 0; at < writable.size(); ++at) {
    auto reopened = memory::seal_and_reopen(writable[at]);
    const std::string what = at < segments ? format("segment {}: ", at) : "manifest: ";
    if (!reopened) return Failure(std::move(reopened).error().within(what));
    if (at < segments) {
      auto whole = memory::check_sealed(*reopened, job.bytes.at(at));
      if (!whole) return Failure(std::move(whole).error().within(what));
    }
    sealed.push_back(std::move(*reopened));
  }
  TRY(check_manifest(sealed.back(), job));
  kill_point("helper.sealed");
  return sealed;
}

Result<std::vector<Fd>> drop(std::vector<Fd> last_holders) {
  kill_point("helper.drop");
  last_holders.clear();
  kill_point("helper.dropped");
  return std::vector<Fd>();
}

// What is refused stays open until this process ends, after it has answered: closing is what may
// not come to an end.
Result<std::vector<Fd>> take(const std::vector<Fd>& sockets) {
  if (sockets.size() != 1) return fail(Code::internal, "{} sockets to take from", sockets.size());
  const auto buffer = std::make_unique<wire::PacketBuffer>();
  wire::Packet packet;
  const auto receipt = TRY(wire::receive_packet(sockets[0], buffer->bytes, 1, packet));
  if (receipt != wire::Receipt::packet || packet.descriptors.size() != 1) {
    return fail(Code::corrupt, "the packet that had a descriptor has none");
  }
  auto allowed = check_foreign(packet.descriptors[0]);
  if (allowed) return std::move(packet.descriptors);
  static_cast<void>(packet.descriptors[0].release());
  return Failure(std::move(allowed).error());
}

Result<std::vector<Fd>> perform(Job& job, std::vector<Fd> descriptors) {
  switch (job.kind) {
    case JobKind::reserve:
      return reserve(job);
    case JobKind::seal:
      return seal(job, std::move(descriptors));
    case JobKind::drop:
      return drop(std::move(descriptors));
    case JobKind::hold:
      return hold_gpu(device_of(job));
    case JobKind::take:
      return take(descriptors);
    case JobKind::keep:
      break;
  }
  return fail(Code::internal, "no job for a process of its own");
}

}  // namespace

bool run_job(FdView socket, const Job& job, std::vector<Fd> descriptors) {
  Job answer = job;
  auto done = perform(answer, std::move(descriptors));
  std::vector<FdView> views;
  if (done) {
    views.assign(done->begin(), done->end());
  } else {
    set_failure(answer, done.error());
  }
  return send_job_waiting(socket, answer, views).has_value();
}

std::string describe(const Job& job) {
  switch (job.kind) {
    case JobKind::reserve:
      return format("reserving {} in {} segments", format_bytes(total_of(job)), job.segments);
    case JobKind::seal:
      return format("sealing and checking {} in {} segments", format_bytes(total_of(job)),
                    job.segments);
    case JobKind::hold:
      return format("holding the device files of \"{}\"", device_of(job));
    case JobKind::take:
      return "taking a descriptor in";
    case JobKind::keep:
    case JobKind::drop:
      break;
  }
  return "giving memory back";
}

}  // namespace wc::daemon
