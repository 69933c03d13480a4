#include <algorithm>
#include <chrono>
#include <memory>

#include "cli/call.hpp"
#include "cli/selection.hpp"
#include "cli/text.hpp"
#include "cli/verb.hpp"

namespace wc::cli {
namespace {

using std::chrono::nanoseconds;

struct Asked {
  Selection selection;
  nanoseconds timeout = kNoLimit;
  bool undo = false;
};

Result<> run(const Asked& asked, Call& call) {
  const auto connection = TRY(call.connect());
  const wc_selector selector = asked.selection.selector();
  {
    Progress progress = call.progress("waiting for its readers");
    wc_wait_options options = WC_WAIT_OPTIONS_INIT;
    // To the library 0 is no limit; to people it is no waiting.
    options.wait_ns = static_cast<std::uint64_t>(std::max(asked.timeout, nanoseconds(1)).count());
    options.progress = Progress::show;
    options.user = &progress;
    options.cancellation = call.signals().cancellation();
    TRY(check(wc_drain(connection.get(), &selector, asked.undo ? 1 : 0, &options)));
  }
  const Json document = {{"name", asked.selection.text}, {"draining", !asked.undo}};
  const std::string name = printable(asked.selection.text);
  return call.answer(document,
                     asked.undo
                         ? format("\"{}\" takes new readers again\n", name)
                         : format("\"{}\" is drained: nobody holds it, nobody may attach\n", name));
}

}  // namespace

Verb drain_verb() {
  auto asked = std::make_shared<Asked>();
  Verb verb{.name = "drain", .summary = "refuse new readers and wait until none is left"};
  verb.description =
      "From now on nobody attaches to the entry; returns when the last reader has detached. After "
      "a "
      "timeout (status 5) or Ctrl-C it stays draining; --undo ends that.";
  verb.examples = {{"weightcache drain Llama-3-8B --timeout 5m", "five minutes at most"},
                   {"weightcache drain Llama-3-8B --undo", "take readers again"}};
  add_selection(verb.options, asked->selection, "The entry to drain");
  verb.options.duration("--timeout", asked->timeout, "How long at most (default: without limit)");
  verb.options.flag("--undo", asked->undo, "Take new readers again");
  verb.run = [asked](Call& call) { return run(*asked, call); };
  return verb;
}

}  // namespace wc::cli
