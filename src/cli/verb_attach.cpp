#include <chrono>
#include <memory>

#include "base/units.hpp"
#include "cli/call.hpp"
#include "cli/entry_text.hpp"
#include "cli/selection.hpp"
#include "cli/verb.hpp"

namespace wc::cli {
namespace {

using std::chrono::nanoseconds;

struct Asked {
  Selection selection;
  std::string access;
  nanoseconds wait{0};
  bool hold = false;
};

std::int32_t access_named(std::string_view name) {
  if (name == "shared") return WC_ACCESS_SHARED;
  if (name == "private") return WC_ACCESS_PRIVATE;
  return WC_ACCESS_DEFAULT;
}

Result<Attachment> attach(const Asked& asked, const Connection& connection, Call& call) {
  Progress progress = call.progress("waiting");
  wc_attach_options options = WC_ATTACH_OPTIONS_INIT;
  options.access = access_named(asked.access);
  options.wait_ns = static_cast<std::uint64_t>(asked.wait.count());
  options.progress = Progress::show;
  options.user = &progress;
  options.cancellation = call.signals().cancellation();
  const wc_selector selector = asked.selection.selector();
  return made<Attachment>(
      [&](wc_attachment** out) { return wc_attach(connection.get(), &selector, &options, out); });
}

Result<> run(const Asked& asked, Call& call) {
  const auto connection = TRY(call.connect());
  const auto attachment = TRY(attach(asked, connection, call));
  auto entry = sized<wc_entry_info>();
  TRY(check(wc_attachment_entry(attachment.get(), &entry)));
  const std::uint64_t attach_ns = wc_attachment_attach_ns(attachment.get());
  Json document = identity_json(entry);
  document["attach_ns"] = attach_ns;
  document["epoch"] = or_empty(wc_attachment_epoch(attachment.get()));
  TRY(call.answer(document, format("attached {} in {}: {}, generation {}\n", quoted_name(entry),
                                   format_duration(nanoseconds(attach_ns)), content_text(entry),
                                   entry.generation)));
  if (!asked.hold) return {};
  call.remark("holding it; Ctrl-C detaches\n");
  // The hold was asked for until somebody ends it: that somebody did is success.
  return call.signals().wait();
}

}  // namespace

Verb attach_verb() {
  auto asked = std::make_shared<Asked>();
  Verb verb{.name = "attach", .summary = "map a published entry, and tell what and how fast"};
  verb.description =
      "The smallest possible reader: it maps the entry's memory into its own process, tells what "
      "it "
      "got, and detaches. An engine does the same through the library, and then uses the memory in "
      "place.\n\n"
      "With --hold it stays attached, so that the entry can't go, until Ctrl-C.";
  verb.examples = {{"weightcache attach Llama-3-8B", "map it once"},
                   {"weightcache attach Llama-3-8B --hold", "keep it until Ctrl-C"},
                   {"weightcache attach Llama-3-8B --wait 10m", "also if it is still loading"}};
  add_selection(verb.options, asked->selection,
                "The entry: NAME, NAME@GENERATION, @FINGERPRINT or "
                "its checkpoint's path");
  verb.options.flag("--hold", asked->hold, "Stay attached until Ctrl-C");
  verb.options.choice("--access", {"shared", "private"}, asked->access,
                      "shared: read-only; private: writing disturbs nobody (default: private for "
                      "host memory, shared for a GPU's)");
  verb.options.duration("--wait", asked->wait, "How long to wait until it is published");
  verb.run = [asked](Call& call) { return run(*asked, call); };
  return verb;
}

}  // namespace wc::cli
