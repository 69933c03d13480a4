#include <memory>
#include <string>

#include <unistd.h>

#include "cli/call.hpp"
#include "cli/facts.hpp"
#include "cli/man.hpp"
#include "cli/verb.hpp"

namespace wc::cli {
namespace {

Result<std::string> page_of(const std::string& name, const std::vector<Verb>& verbs) {
  CommonOptions unused;
  Options common;
  add_common(common, unused);
  if (name == "weightcache") return program_page(verbs, common);
  for (const auto& verb : verbs) {
    if (verb.name == name && !verb.hidden) return verb_page(verb, verbs, common);
  }
  return fail(Code::not_found, "no verb is called \"{}\"", name);
}

}  // namespace

Verb man_verb(const std::vector<Verb>& verbs) {
  auto name = std::make_shared<std::string>();
  Verb verb{.name = "__man", .summary = "print a manual page's source", .hidden = true};
  verb.options.argument("VERB", *name, "A verb, or weightcache");
  verb.run = [name, &verbs](Call&) -> Result<> {
    const std::string page = TRY(page_of(*name, verbs));
    return write_all(FdView(STDOUT_FILENO), page);
  };
  return verb;
}

}  // namespace wc::cli
