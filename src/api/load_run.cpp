#include "api/load_run.hpp"

#include <utility>

#include "api/identity.hpp"
#include "api/load_manifest.hpp"
#include "api/source.hpp"
#include "base/kill_point.hpp"
#include "base/log.hpp"

namespace wc::api {
namespace {

using Clock = std::chrono::steady_clock;

bool cancelled(const LoadRequest& request) {
  return request.cancellation != nullptr && request.cancellation->is_cancelled();
}

Result<> check_cancelled(const LoadPlan& plan) {
  if (!cancelled(plan.request)) return {};
  return fail(Code::cancelled, "the load of \"{}\" was cancelled", plan.source.name);
}

Result<load::FillResult> fill(const LoadPlan& plan, client::Publication& publication,
                              ProgressTeller& progress) {
  load::FillOptions options;
  options.tier = plan.request.tier;
  options.threads = plan.request.threads;
  options.digest = plan.request.digest;
  options.progress = [&](const load::Progress& done) {
    kill_point("load.filling");
    publication.report_progress(done.done_bytes, done.total_bytes);
    progress.reading(done);
  };
  if (plan.request.cancellation != nullptr) options.cancel = &plan.request.cancellation->flag();
  return load::fill(plan.checkpoint, plan.placement, publication.device(), publication.views(),
                    options);
}

// What is part of the contract: where every process has the segments, if that is fixed.
std::vector<std::uint64_t> fixed_addresses(const client::Publication& publication) {
  std::vector<std::uint64_t> addresses;
  if (!publication.fixed_addresses()) return addresses;
  for (const memory::View* view : publication.views()) addresses.push_back(view->address());
  return addresses;
}

Result<std::vector<std::byte>> describe(const LoadPlan& plan,
                                        const client::Publication& publication,
                                        const load::FillResult& filled,
                                        const manifest::Fingerprint& fingerprint,
                                        std::chrono::nanoseconds took) {
  auto provenance = provenance_of_this_process();
  provenance.source = plan.source.path;
  provenance.took_ns = took.count();
  const auto addresses = fixed_addresses(publication);
  auto builder = TRY(manifest_of({.checkpoint = plan.checkpoint,
                                  .placement = plan.placement,
                                  .digests = filled.digests,
                                  .addresses = addresses,
                                  .segment_flags = publication.device().info().segment_flags,
                                  .provenance = std::move(provenance)}));
  TRY(builder.set_fingerprint(fingerprint));
  return builder.finish();
}

// The strong receipt only where nobody could have written through a mapping unseen.
std::vector<std::string> own_aliases(const LoadPlan& plan, const load::FillResult& filled) {
  if (filled.leased) return {receipt_alias(plan.source.survey)};
  log(Level::info, "\"{}\" was read without a lease on its files: its receipt is weak",
      plan.source.path);
  return {};
}

// By its bytes; without digests by the files' receipts, which this publisher vouches for: the same
// files unchanged are the same source, and nothing else is.
manifest::Fingerprint identity_of(const LoadPlan& plan, const load::FillResult& filled) {
  if (plan.request.digest) return fingerprint_of(plan.checkpoint, filled.digests);
  manifest::Fingerprint fingerprint;
  fingerprint.source.source_id =
      filled.leased ? receipt_alias(plan.source.survey) : weak_receipt_alias(plan.source.survey);
  return fingerprint;
}

Result<LoadRun> steps(const LoadPlan& plan, client::Publication& publication,
                      ProgressTeller& progress) {
  const auto start = Clock::now();
  kill_point("load.granted");
  TRY(check_cancelled(plan));
  TRY(publication.reserve(plan.placement.segment_bytes));
  kill_point("load.reserved");

  LoadRun run;
  run.filled = TRY(fill(plan, publication, progress));
  kill_point("load.filled");
  TRY(plan.checkpoint.unchanged());
  TRY(check_unchanged(plan.source, plan.request));

  const auto fingerprint = identity_of(plan, run.filled);
  client::PublishOptions options;
  options.fingerprint = TRY(manifest::digest_of(fingerprint));
  options.aliases = own_aliases(plan, run.filled);
  const auto manifest =
      TRY(describe(plan, publication, run.filled, fingerprint, Clock::now() - start));
  kill_point("load.manifest");
  TRY(check_cancelled(plan));
  kill_point("load.publishing");
  run.published = TRY(publication.publish(manifest, options));
  return run;
}

}  // namespace

Result<LoadRun> run_load(const LoadPlan& plan, client::Publication& publication,
                         ProgressTeller& progress) {
  auto run = steps(plan, publication, progress);
  if (!run) (void)publication.abandon(run.error());
  return run;
}

}  // namespace wc::api
