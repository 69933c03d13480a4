#include <memory>
#include <set>
#include <string>

#include <unistd.h>

#include "cli/call.hpp"
#include "cli/text.hpp"
#include "cli/verb.hpp"

namespace wc::cli {
namespace {

Result<std::string> entry_names(const Call& call) {
  const auto connection = TRY(call.connect());
  const auto list = TRY(made<EntryList>(
      [&](wc_entry_list** out) { return wc_list(connection.get(), nullptr, out); }));
  std::set<std::string> names;
  for (std::size_t at = 0; at < wc_entry_list_count(list.get()); ++at) {
    auto entry = sized<wc_entry_info>();
    TRY(check(wc_entry_list_at(list.get(), at, &entry)));
    names.insert(or_empty(entry.name));
  }
  std::string lines;
  for (const auto& name : names) {
    // One that a shell could not offer as a line is not offered.
    if (printable(name) == name) lines += name + '\n';
  }
  return lines;
}

}  // namespace

Verb complete_verb() {
  auto what = std::make_shared<std::string>();
  Verb verb{.name = "__complete", .summary = "what a shell may offer", .hidden = true};
  verb.options.argument("WHAT", *what, "names");
  verb.run = [what](Call& call) -> Result<> {
    // A shell that completes is no place for an error: there is nothing to offer then.
    const auto names = entry_names(call);
    if (!names || *what != "names") return {};
    return write_all(FdView(STDOUT_FILENO), *names);
  };
  return verb;
}

}  // namespace wc::cli
