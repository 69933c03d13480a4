#include <chrono>
#include <memory>

#include "cli/call.hpp"
#include "cli/entry_text.hpp"
#include "cli/selection.hpp"
#include "cli/verb.hpp"

namespace wc::cli {
namespace {

using std::chrono::nanoseconds;

struct Asked {
  Selection selection;
  nanoseconds timeout = kNoLimit;
};

Result<EntryList> wait(const Asked& asked, const Connection& connection, Call& call) {
  Progress progress = call.progress("waiting");
  wc_wait_options options = WC_WAIT_OPTIONS_INIT;
  options.wait_ns = static_cast<std::uint64_t>(asked.timeout.count());
  options.progress = Progress::show;
  options.user = &progress;
  options.cancellation = call.signals().cancellation();
  const wc_selector selector = asked.selection.selector();
  return made<EntryList>(
      [&](wc_entry_list** out) { return wc_wait(connection.get(), &selector, &options, out); });
}

Result<> run(const Asked& asked, Call& call) {
  const auto connection = TRY(call.connect());
  const auto list = TRY(wait(asked, connection, call));
  auto entry = sized<wc_entry_info>();
  TRY(check(wc_entry_list_at(list.get(), 0, &entry)));
  return call.answer(entry_json(entry),
                     format("{} is published: {}, generation {}\n", quoted_name(entry),
                            content_text(entry), entry.generation));
}

}  // namespace

Verb wait_verb() {
  auto asked = std::make_shared<Asked>();
  Verb verb{.name = "wait", .summary = "wait until an entry is published"};
  verb.description =
      "Returns as soon as the entry can be attached to; at once if it can be now. A name that "
      "nobody has loaded yet is waited for as well.";
  verb.examples = {{"weightcache wait Llama-3-8B --timeout 60", "a minute at most; then status 5"},
                   {"weightcache wait Llama-3-8B --timeout 0", "only ask"}};
  add_selection(verb.options, asked->selection, "The entry to wait for");
  verb.options.duration("--timeout", asked->timeout, "How long at most (default: without limit)");
  verb.run = [asked](Call& call) { return run(*asked, call); };
  return verb;
}

}  // namespace wc::cli
