// Resident bytes against the disk.
#include <memory>
#include <utility>

#include "api/attachment.hpp"
#include "api/convert.hpp"
#include "api/guard.hpp"
#include "api/source.hpp"
#include "api/structs.hpp"
#include "api/verify_plan.hpp"
#include "base/units.hpp"
#include "checkpoint/checkpoint.hpp"
#include "load/fill.hpp"

struct wc_verification {
  struct Mismatch {
    std::string tensor;
    std::uint64_t offset = 0;
  };
  wc::wire::fb::EntryInfoT entry;
  std::uint64_t bytes = 0;
  std::vector<Mismatch> mismatches;
};

namespace wc::api {
namespace {

constexpr std::size_t kDefaultLimit = 1000;

Result<std::string> source_of(const wc_verify_options& options,
                              const client::Attachment& attachment) {
  const std::string_view given = text_or_empty(options.source);
  if (!given.empty()) return expand_home(given);
  const std::string_view own = attachment.manifest().provenance().source;
  if (!own.empty()) return std::string(own);
  return fail(Code::invalid_argument,
              "\"{}\" does not say where it came from: give the source to compare with",
              attachment.entry().name);
}

checkpoint::OpenOptions reading_of(const wc_verify_options& options) {
  checkpoint::OpenOptions reading;
  reading.compat = options.compat != 0;
  reading.allow_trailing = options.allow_trailing != 0;
  reading.follow_symlinks = options.follow_symlinks != 0;
  return reading;
}

Result<std::unique_ptr<wc_verification>> compare(const wc_verify_options& options,
                                                 const client::Attachment& attachment,
                                                 ProgressTeller& progress) {
  const auto source = TRY(source_of(options, attachment));
  const auto checkpoint = TRY(checkpoint::Checkpoint::open(source, reading_of(options)));
  const auto placement = TRY(placement_of(attachment.manifest(), checkpoint));
  load::FillOptions comparing;
  comparing.progress = [&](const load::Progress& done) { progress.reading(done); };
  const auto* cancellation = inner(options.cancellation);
  if (cancellation != nullptr) comparing.cancel = &cancellation->flag();
  const std::size_t limit = options.limit == 0 ? kDefaultLimit : options.limit;
  const auto views = attachment.views();
  const auto mismatches =
      TRY(load::compare(checkpoint, placement, attachment.device(), views, limit, comparing));

  auto result = std::make_unique<wc_verification>();
  result->entry = attachment.entry();
  result->bytes = checkpoint.tensor_bytes();
  for (const load::Mismatch& mismatch : mismatches)
    result->mismatches.push_back(
        {std::string(checkpoint.tensors()[mismatch.tensor].name), mismatch.offset});
  return result;
}

Result<std::unique_ptr<wc_verification>> verify(const wc_connection& connection,
                                                const wc_selector* selector,
                                                const wc_verify_options* given) {
  const auto options = TRY(take_struct_or_default(given, "wc_verify_options"));
  ProgressTeller progress(options.progress, options.user);
  AttachRequest request;
  request.wanted = TRY(wanted_of(selector, *connection.devices));
  request.access = WC_ACCESS_SHARED;
  request.cancellation = inner(options.cancellation);
  const auto attachment = TRY(attach(connection, request, progress));
  auto compared = compare(options, *attachment, progress);
  (void)attachment->detach();
  return compared;
}

}  // namespace
}  // namespace wc::api

using wc::Result;
using wc::api::guarded;
using wc::api::required;

extern "C" {

int wc_verify(wc_connection* connection, const wc_selector* selector,
              const wc_verify_options* options, wc_verification** out) {
  return guarded([&]() -> Result<> {
    TRY(required(out, "out"));
    *out = nullptr;
    TRY(required(connection, "connection"));
    auto made = TRY(wc::api::verify(*connection, selector, options));
    *out = made.release();
    return {};
  });
}

int wc_verification_entry(const wc_verification* verification, wc_entry_info* out) {
  return guarded([&]() -> Result<> {
    TRY(required(verification, "verification"));
    return wc::api::give_struct(out, wc::api::view_of(verification->entry), "wc_entry_info");
  });
}

uint64_t wc_verification_bytes(const wc_verification* verification) {
  return verification == nullptr ? 0 : verification->bytes;
}

size_t wc_verification_mismatch_count(const wc_verification* verification) {
  return verification == nullptr ? 0 : verification->mismatches.size();
}

int wc_verification_mismatch_at(const wc_verification* verification, size_t index,
                                const char** tensor, uint64_t* offset) {
  return guarded([&]() -> Result<> {
    TRY(required(verification, "verification"));
    if (index >= verification->mismatches.size())
      return wc::fail(wc::Code::invalid_argument, "there is no mismatch {}: there are {}",
                      wc::format_count(index), wc::format_count(verification->mismatches.size()));
    const auto& mismatch = verification->mismatches[index];
    if (tensor != nullptr) *tensor = mismatch.tensor.c_str();
    if (offset != nullptr) *offset = mismatch.offset;
    return {};
  });
}

void wc_verification_free(wc_verification* verification) { delete verification; }

}  // extern "C"
