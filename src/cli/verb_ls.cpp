#include <algorithm>
#include <memory>
#include <vector>

#include "base/units.hpp"
#include "cli/call.hpp"
#include "cli/entry_text.hpp"
#include "cli/selection.hpp"
#include "cli/table.hpp"
#include "cli/text.hpp"
#include "cli/verb.hpp"

namespace wc::cli {
namespace {

std::string table_of(const std::vector<wc_entry_info>& entries, const Terminal& terminal) {
  const bool cut = std::ranges::any_of(entries, [](const auto& entry) { return entry.world > 1; });
  std::vector<Column> columns = {{.title = "NAME", .shrinks = true},
                                 {.title = "GEN", .align = Align::right},
                                 {.title = "STATE"},
                                 {.title = "SIZE", .align = Align::right},
                                 {.title = "DEVICE", .shrinks = true},
                                 {.title = "LEASES", .align = Align::right, .drops = true},
                                 {.title = "TENSORS", .align = Align::right, .drops = true},
                                 {.title = "FORM", .shrinks = true, .drops = true},
                                 {.title = "SINCE", .align = Align::right, .drops = true}};
  if (cut) columns.insert(columns.begin() + 1, {.title = "RANK", .align = Align::right});
  Table table(std::move(columns));
  const std::int64_t now = now_unix_ns();
  for (const auto& entry : entries) {
    const bool loading = entry.state == WC_LOADING;
    std::vector<Cell> row = {{or_empty(entry.name)},
                             {entry.generation == 0 ? "-" : std::to_string(entry.generation)},
                             {state_text(entry), state_colour(entry)},
                             {format_bytes(loading ? entry.total_bytes : entry.bytes)},
                             {or_empty(entry.device)},
                             {format_count(entry.leases)},
                             {entry.tensors == 0 ? "-" : format_count(entry.tensors)},
                             {form_text(entry)},
                             {age(entry.since_unix_ns, now)}};
    if (cut) row.insert(row.begin() + 1, {format("{}/{}", entry.rank, entry.world)});
    table.add(std::move(row));
  }
  return table.render(terminal);
}

Result<> run(const std::string& name, Call& call) {
  const auto connection = TRY(call.connect());
  auto daemon = sized<wc_daemon_info>();
  TRY(check(wc_connection_daemon(connection.get(), &daemon)));
  wc_selector selector = WC_SELECTOR_INIT;
  selector.text = name.c_str();
  const auto list = TRY(made<EntryList>([&](wc_entry_list** out) {
    return wc_list(connection.get(), name.empty() ? nullptr : &selector, out);
  }));
  std::vector<wc_entry_info> entries;
  for (std::size_t at = 0; at < wc_entry_list_count(list.get()); ++at) {
    auto& entry = entries.emplace_back(sized<wc_entry_info>());
    TRY(check(wc_entry_list_at(list.get(), at, &entry)));
  }
  Json document = {{"epoch", or_empty(daemon.epoch)}, {"entries", Json::array()}};
  for (const auto& entry : entries) document["entries"].push_back(entry_json(entry));
  if (!entries.empty()) return call.answer(document, table_of(entries, call.out()));
  return call.answer(document, name.empty() ? "nothing is resident yet; make a checkpoint resident "
                                              "with: weightcache load PATH\n"
                                            : "nothing of that name is resident\n");
}

}  // namespace

Verb ls_verb() {
  auto name = std::make_shared<std::string>();
  Verb verb{.name = "ls", .alias = "ps", .summary = "list what is resident or being loaded"};
  verb.description =
      "One line for each entry: its name, generation, state, size, device, and how many readers "
      "hold it.";
  verb.examples = {{"weightcache ls", "everything"},
                   {"weightcache ls --json | jq -r '.entries[].name'", "the names alone"}};
  auto& argument = verb.options.argument("NAME", *name, "Only what this name stands for");
  argument.required = false;
  argument.completes = Completes::entry;
  verb.run = [name](Call& call) { return run(*name, call); };
  return verb;
}

}  // namespace wc::cli
