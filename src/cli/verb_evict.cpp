#include <memory>

#include "base/units.hpp"
#include "cli/call.hpp"
#include "cli/selection.hpp"
#include "cli/text.hpp"
#include "cli/verb.hpp"

namespace wc::cli {
namespace {

struct Asked {
  Selection selection;
  bool force = false;
};

std::string text_of(const wc_evicted& evicted, const std::string& name) {
  if (evicted.leases == 0) {
    return format("evicted \"{}\": {} given back\n", printable(name), format_bytes(evicted.bytes));
  }
  return format("evicted \"{}\": nobody finds it any more; {} stay until {} detach{}\n",
                printable(name), format_bytes(evicted.bytes), counted(evicted.leases, "reader"),
                evicted.leases == 1 ? "es" : "");
}

Result<> run(const Asked& asked, Call& call) {
  const auto connection = TRY(call.connect());
  const wc_selector selector = asked.selection.selector();
  auto evicted = sized<wc_evicted>();
  TRY(check(wc_evict(connection.get(), &selector, asked.force ? 1 : 0, &evicted)));
  const Json document = {
      {"entries", evicted.entries}, {"bytes", evicted.bytes}, {"leases", evicted.leases}};
  return call.answer(document, text_of(evicted, asked.selection.text));
}

}  // namespace

Verb evict_verb() {
  auto asked = std::make_shared<Asked>();
  Verb verb{.name = "evict", .alias = "rm", .summary = "drop an entry and give its memory back"};
  verb.description =
      "Takes the entry out of the catalog. Readers that are attached keep it: the memory goes when "
      "the last of them detaches. What is pinned or still loading is evicted only with --force; a "
      "load is then cancelled.";
  verb.examples = {{"weightcache evict Llama-3-8B", "the name, in all generations"},
                   {"weightcache evict Llama-3-8B@2", "one generation"},
                   {"weightcache evict @1a2b3c4d", "the content, under all its names"}};
  add_selection(verb.options, asked->selection,
                "The entry: NAME, NAME@GENERATION, @FINGERPRINT or "
                "its checkpoint's path");
  verb.options.flag("--force", asked->force, "Also if it is pinned or still loading");
  verb.run = [asked](Call& call) { return run(*asked, call); };
  return verb;
}

}  // namespace wc::cli
