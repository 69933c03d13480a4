#include <chrono>
#include <memory>

#include "base/units.hpp"
#include "cli/call.hpp"
#include "cli/entry_text.hpp"
#include "cli/selection.hpp"
#include "cli/text.hpp"
#include "cli/verb.hpp"

namespace wc::cli {
namespace {

using std::chrono::steady_clock;

struct Asked {
  Selection selection;
  std::string source;
  bool compat = false;
  bool allow_trailing = false;
  bool follow_symlinks = false;
};

struct Mismatch {
  std::string tensor;
  std::uint64_t offset = 0;
};

Result<Verification> verify(const Asked& asked, const Connection& connection, Call& call) {
  Progress progress = call.progress("comparing");
  wc_verify_options options = WC_VERIFY_OPTIONS_INIT;
  options.source = asked.source.empty() ? nullptr : asked.source.c_str();
  options.compat = asked.compat ? 1 : 0;
  options.allow_trailing = asked.allow_trailing ? 1 : 0;
  options.follow_symlinks = asked.follow_symlinks ? 1 : 0;
  options.progress = Progress::show;
  options.user = &progress;
  options.cancellation = call.signals().cancellation();
  const wc_selector selector = asked.selection.selector();
  return made<Verification>(
      [&](wc_verification** out) { return wc_verify(connection.get(), &selector, &options, out); });
}

Result<std::vector<Mismatch>> mismatches_of(const Verification& verification) {
  std::vector<Mismatch> mismatches;
  for (std::size_t at = 0; at < wc_verification_mismatch_count(verification.get()); ++at) {
    const char* tensor = nullptr;
    std::uint64_t offset = 0;
    TRY(check(wc_verification_mismatch_at(verification.get(), at, &tensor, &offset)));
    mismatches.push_back({or_empty(tensor), offset});
  }
  return mismatches;
}

std::string lines_of(const std::vector<Mismatch>& mismatches) {
  std::string lines;
  for (const auto& mismatch : mismatches) {
    lines += format("\"{}\" differs from byte {} on\n", printable(mismatch.tensor),
                    format_count(mismatch.offset));
  }
  return lines;
}

Result<> run(const Asked& asked, Call& call) {
  const auto connection = TRY(call.connect());
  const auto began = steady_clock::now();
  const auto verification = TRY(verify(asked, connection, call));
  const auto took = steady_clock::now() - began;
  auto entry = sized<wc_entry_info>();
  TRY(check(wc_verification_entry(verification.get(), &entry)));
  const std::uint64_t bytes = wc_verification_bytes(verification.get());
  const auto mismatches = TRY(mismatches_of(verification));
  Json document = {{"name", or_empty(entry.name)},
                   {"tensors", entry.tensors},
                   {"bytes", bytes},
                   {"mismatches", Json::array()},
                   {"fingerprint", or_empty(entry.fingerprint)},
                   {"generation", entry.generation}};
  for (const auto& mismatch : mismatches) {
    document["mismatches"].push_back({{"tensor", mismatch.tensor}, {"offset", mismatch.offset}});
  }
  if (mismatches.empty()) {
    return call.answer(document, format("{} equals the disk: {}, {} compared at {}\n",
                                        quoted_name(entry), counted(entry.tensors, "tensor"),
                                        format_bytes(bytes), format_rate(bytes, took)));
  }
  return call.answer_with(
      document, lines_of(mismatches),
      Error{Code::mismatch,
            format("{} of {} of {} differ from the disk", format_count(mismatches.size()),
                   counted(entry.tensors, "tensor"), quoted_name(entry)),
            {}});
}

}  // namespace

Verb verify_verb() {
  auto asked = std::make_shared<Asked>();
  Verb verb{.name = "verify", .summary = "compare resident bytes with the disk"};
  verb.description =
      "Reads the checkpoint again and compares every byte with what is resident. Ends with status "
      "1 "
      "and the code mismatch where they differ, after a line for each tensor that does.";
  verb.examples = {{"weightcache verify Llama-3-8B", "with the files that it came from"},
                   {"weightcache verify Llama-3-8B /backup/Llama-3-8B", "with other ones"}};
  add_selection(verb.options, asked->selection, "The entry to compare");
  auto& source =
      verb.options.argument("SOURCE", asked->source,
                            "The checkpoint to compare it with (default: where the entry "
                            "says that it came from)");
  source.required = false;
  source.completes = Completes::path;
  verb.options.flag("--compat", asked->compat, "Read the files as load --compat does");
  verb.options.flag("--allow-trailing", asked->allow_trailing,
                    "Accept bytes behind the last tensor of a file");
  verb.options.flag("--follow-symlinks", asked->follow_symlinks,
                    "Follow links that leave the checkpoint's directory");
  verb.run = [asked](Call& call) { return run(*asked, call); };
  return verb;
}

}  // namespace wc::cli
