// The one step after which readers can attach, in two halves around the helper's work: it seals
// what nobody may write any more, reads the manifest whole, and tells what it found.
#include "base/kill_point.hpp"
#include "base/units.hpp"
#include "daemon/convert.hpp"
#include "daemon/handlers.hpp"
#include "daemon/log.hpp"

namespace wc::daemon {
namespace {

using catalog::EntryId;

struct Publishing {
  catalog::SessionId session{};
  std::uint64_t request = 0;
  EntryId load = EntryId::none;
};

Result<> check_complete(const StoredEntry* stored) {
  if (stored == nullptr) return fail(Code::invalid_argument, "nothing has been reserved");
  if (stored->jobs > 0) {
    return fail(Code::busy, "the load's last request is still being worked on");
  }
  for (std::size_t at = 0; at < stored->segments.size(); ++at) {
    if (!stored->segments[at].handle) {
      return fail(Code::invalid_argument, "segment {} has not been supplied", at);
    }
  }
  if (!stored->manifest) return fail(Code::invalid_argument, "there is no manifest");
  return {};
}

std::vector<FdView> to_seal(const StoredEntry& stored) {
  std::vector<FdView> writable;
  if (stored.transport == memory::Transport::host_fd) {
    for (const StoredSegment& segment : stored.segments) {
      writable.push_back(std::get<Fd>(*segment.handle));
    }
  }
  writable.push_back(stored.manifest);
  return writable;
}

// The read-only descriptors in the place of the writable ones, which are never the last: their
// close is a matter of microseconds.
Result<> keep_sealed(StoredEntry& stored, HelperClient::Done done) {
  const bool host = stored.transport == memory::Transport::host_fd;
  const std::size_t segments = host ? stored.segments.size() : 0;
  if (done.descriptors.size() != segments + 1) {
    return fail(Code::internal, "the helper answered with {} descriptors instead of {}",
                done.descriptors.size(), segments + 1);
  }
  for (std::size_t at = 0; at < segments; ++at) {
    stored.segments[at].handle = std::move(done.descriptors[at]);
  }
  stored.manifest = std::move(done.descriptors.back());
  stored.manifest_bytes = done.job.manifest_bytes;
  stored.loading = false;
  return {};
}

catalog::Summary summary_of(const Job& job) {
  catalog::Summary summary;
  summary.fingerprint.assign(job.fingerprint.data(), job.fingerprint.size());
  summary.source_digest.assign(job.source_digest.data(), job.source_digest.size());
  summary.tensors = job.tensors;
  return summary;
}

Result<catalog::Publication> conclude(Core& core, const Publishing& what,
                                      Result<HelperClient::Done> done) {
  StoredEntry& stored = *core.store().find(what.load);  // kept by the job that this ends
  if (stored.given_back) return fail(Code::cancelled, "the load was cancelled by an eviction");
  const catalog::Summary summary = done ? summary_of(done->job) : catalog::Summary{};
  Result<> sealed = done ? keep_sealed(stored, std::move(*done)) : Failure(done.error());
  if (!sealed) {
    static_cast<void>(core.catalog().publish_failed(what.load, core.now()));
    return Failure(sealed.error());
  }
  kill_point("daemon.publishing");
  auto publication = TRY(core.catalog().publish_done(what.load, summary, core.now()));
  stored.fingerprint = publication.entry.fingerprint;
  stored.device = publication.entry.device;
  if (publication.outcome != catalog::Outcome::already_resident) core.keep_memory(what.load);
  return publication;
}

void announce(const catalog::Publication& publication) {
  const catalog::EntryInfo& entry = publication.entry;
  const char* how = "published";
  if (publication.outcome == catalog::Outcome::already_resident) how = "was resident already:";
  if (publication.outcome == catalog::Outcome::prepared) how = "prepared";
  report(Level::info, "{} \"{}\" generation {} rank {} of {} ({}, {} tensors, {})", how, entry.name,
         entry.generation, entry.rank, entry.world, format_bytes(entry.bytes),
         format_count(entry.tensors), entry.device);
}

void seal_answered(Core& core, const Publishing& what, Result<HelperClient::Done> done) {
  auto publication = conclude(core, what, std::move(done));
  kill_point("daemon.published");
  if (Session* session = core.session(what.session); session != nullptr) {
    core.load_over(*session, what.load);
    if (publication) {
      fb::PublishedT answer;
      answer.entry = to_wire_ptr(publication->entry);
      answer.outcome = static_cast<fb::Outcome>(publication->outcome);
      session->send(what.request, answer);
    } else {
      session->send_failure(what.request, publication.error());
    }
  }
  if (publication) announce(*publication);
  core.settle();
  core.job_over(what.load);
  core.settle();
}

}  // namespace

Result<> handle(Call& call, const fb::PublishT& message) {
  const Publishing what{call.session.id(), call.request, EntryId{message.load}};
  TRY(call.core.load_of(call.session, what.load));
  StoredEntry* stored = call.core.store().find(what.load);
  TRY(check_complete(stored));
  TRY(call.core.catalog().publish_begin(call.session.id(), what.load,
                                        {message.fingerprint, message.aliases}));
  std::vector<std::uint64_t> sizes;
  for (const StoredSegment& segment : stored->segments) sizes.push_back(segment.bytes);
  const auto writable = to_seal(*stored);
  ++stored->jobs;
  call.core.helper().seal({stored->transport, sizes, writable, message.fingerprint},
                          [&core = call.core, what](Result<HelperClient::Done> done) {
                            seal_answered(core, what, std::move(done));
                          });
  return {};
}

}  // namespace wc::daemon
