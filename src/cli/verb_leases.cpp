#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include <pwd.h>

#include "base/units.hpp"
#include "cli/call.hpp"
#include "cli/table.hpp"
#include "cli/text.hpp"
#include "cli/verb.hpp"

namespace wc::cli {
namespace {

// The user's name, or the number where the system knows none.
std::string user_named(std::uint32_t uid) {
  std::array<char, 4096> buffer{};
  passwd record{};
  passwd* found = nullptr;
  ::getpwuid_r(uid, &record, buffer.data(), buffer.size(), &found);
  return found != nullptr ? found->pw_name : std::to_string(uid);
}

Json document_of(const std::vector<wc_lease_info>& leases) {
  Json list = Json::array();
  for (const auto& lease : leases) {
    list.push_back({{"lease", lease.lease},
                    {"name", or_empty(lease.name)},
                    {"generation", lease.generation},
                    {"form", or_empty(lease.form)},
                    {"rank", lease.rank},
                    {"device", or_empty(lease.device)},
                    {"bytes", lease.bytes},
                    {"label", or_empty(lease.label)},
                    {"command", or_empty(lease.command)},
                    {"pid", lease.pid},
                    {"uid", lease.uid},
                    {"user", user_named(lease.uid)},
                    {"container", or_empty(lease.container)},
                    {"since_unix_ns", lease.since_unix_ns}});
  }
  return {{"leases", std::move(list)}};
}

std::string table_of(const std::vector<wc_lease_info>& leases, const Terminal& terminal) {
  Table table({{.title = "NAME", .shrinks = true},
               {.title = "GEN", .align = Align::right},
               {.title = "RANK", .align = Align::right, .drops = true},
               {.title = "LABEL", .shrinks = true},
               {.title = "PID", .align = Align::right},
               {.title = "USER"},
               {.title = "SINCE", .align = Align::right},
               {.title = "COMMAND", .shrinks = true, .drops = true},
               {.title = "CONTAINER", .shrinks = true, .drops = true}});
  const std::int64_t now = now_unix_ns();
  for (const auto& lease : leases) {
    const std::string container = or_empty(lease.container);
    table.add({{or_empty(lease.name)},
               {std::to_string(lease.generation)},
               {std::to_string(lease.rank)},
               {or_empty(lease.label)},
               {lease.pid == 0 ? "-" : std::to_string(lease.pid)},
               {user_named(lease.uid)},
               {age(lease.since_unix_ns, now)},
               {or_empty(lease.command)},
               {container.empty() ? "-" : container}});
  }
  return table.render(terminal);
}

Result<> run(const std::string& name, Call& call) {
  const auto connection = TRY(call.connect());
  wc_selector selector = WC_SELECTOR_INIT;
  selector.text = name.c_str();
  const auto list = TRY(made<LeaseList>([&](wc_lease_list** out) {
    return wc_leases(connection.get(), name.empty() ? nullptr : &selector, out);
  }));
  std::vector<wc_lease_info> leases;
  for (std::size_t at = 0; at < wc_lease_list_count(list.get()); ++at) {
    auto& lease = leases.emplace_back(sized<wc_lease_info>());
    TRY(check(wc_lease_list_at(list.get(), at, &lease)));
  }
  return call.answer(document_of(leases),
                     leases.empty() ? "nobody holds anything\n" : table_of(leases, call.out()));
}

}  // namespace

Verb leases_verb() {
  auto name = std::make_shared<std::string>();
  Verb verb{.name = "leases", .summary = "tell who holds an entry, and since when"};
  verb.description =
      "One line for each reader that is attached: what it calls itself, its process, user and "
      "container. The process number is the one in the daemon's PID namespace.";
  verb.examples = {{"weightcache leases", "every reader"},
                   {"weightcache leases Llama-3-8B", "those of one entry"}};
  auto& argument = verb.options.argument("NAME", *name, "Only the leases of this entry");
  argument.required = false;
  argument.completes = Completes::entry;
  verb.run = [name](Call& call) { return run(*name, call); };
  return verb;
}

}  // namespace wc::cli
