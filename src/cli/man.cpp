#include "cli/man.hpp"

#include <cctype>
#include <span>
#include <string_view>

#include "weightcache/weightcache.h"

#include "cli/facts.hpp"
#include "cli/help.hpp"

namespace wc::cli {
namespace {

// Text that roff prints as it stands: its escape and its two control characters made harmless, and
// hyphens kept as the ones that people type.
std::string roff(std::string_view text) {
  std::string out;
  for (const char byte : text) {
    const bool starts_line = out.empty() || out.back() == '\n';
    if (starts_line && (byte == '.' || byte == '\'')) out += "\\&";
    if (byte == '\\') {
      out += "\\e";
    } else if (byte == '-') {
      out += "\\-";
    } else {
      out += byte;
    }
  }
  return out;
}

std::string upper(std::string text) {
  for (char& letter : text)
    letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  return text;
}

std::string head(const std::string& page, std::string_view summary) {
  return format(".TH {} 1 \"\" \"weightcache {}\" \"weightcache\"\n.SH NAME\n{} \\- {}\n",
                upper(page), wc_version(), roff(page), roff(summary));
}

std::string section(std::string_view title, const std::string& body) {
  return body.empty() ? "" : format(".SH {}\n{}", title, body);
}

std::string paragraphs(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::string_view paragraph = text.substr(0, text.find("\n\n"));
    text.remove_prefix(std::min(text.size(), paragraph.size() + 2));
    out += ".PP\n" + roff(paragraph) + "\n";
  }
  // A paragraph macro right after a title is an error to the stricter readers.
  return out.substr(out.empty() ? 0 : 4);
}

std::string item(std::string_view label, std::string_view means) {
  return format(".TP\n.B {}\n{}\n", label, roff(means));
}

std::string option_items(const Options& options) {
  std::string out;
  for (const auto& option : options.all()) out += item(roff(option_label(option)), option.help);
  return out;
}

std::string fact_items(std::span<const Fact> facts) {
  std::string out;
  for (const auto& fact : facts) out += item(roff(fact.name), fact.means);
  return out;
}

std::string example_items(const std::vector<Example>& examples) {
  std::string out;
  for (const auto& example : examples) out += item(roff(example.command), example.means);
  return out;
}

std::string see_also(const std::vector<Verb>& verbs, std::string_view but) {
  std::string out;
  const auto add = [&out](const std::string& page) {
    out += (out.empty() ? ".BR " : " ,\n.BR ") + roff(page) + " (1)";
  };
  if (but != "weightcache") add("weightcache");
  for (const auto& verb : verbs) {
    if (!verb.hidden && verb.name != but) add("weightcache-" + verb.name);
  }
  return out + "\n";
}

}  // namespace

std::string program_page(const std::vector<Verb>& verbs, const Options& common) {
  std::string items;
  std::vector<Example> steps;
  steps.reserve(kFirstSteps.size());
  for (const auto& verb : verbs) {
    if (verb.hidden) continue;
    const std::string label = verb.alias.empty() ? verb.name : verb.name + ", " + verb.alias;
    items += item(roff(label), verb.summary);
  }
  for (const auto& step : kFirstSteps)
    steps.push_back({std::string(step.name), std::string(step.means)});
  return head("weightcache", "keep model weights resident, outside the engine") +
         section("SYNOPSIS", ".B weightcache\nVERB [OPTIONS] ...\n") +
         section("DESCRIPTION", paragraphs(kPurpose)) + section("VERBS", items) +
         section("OPTIONS", option_items(common)) +
         section("EXIT STATUS", fact_items(kExitStatuses)) +
         section("ENVIRONMENT", fact_items(kEnvironment)) +
         section("EXAMPLES", example_items(steps)) +
         section("SEE ALSO", see_also(verbs, "weightcache"));
}

std::string verb_page(const Verb& verb, const std::vector<Verb>& verbs, const Options& common) {
  std::string names = format(".B weightcache {}\n", roff(synopsis(verb)));
  if (!verb.alias.empty()) names += format(".PP\nAlso: weightcache {}\n", roff(verb.alias));
  return head("weightcache-" + verb.name, verb.summary) + section("SYNOPSIS", names) +
         section("DESCRIPTION", paragraphs(verb.description)) +
         section("OPTIONS", option_items(verb.options)) +
         section("OPTIONS OF EVERY VERB", option_items(common)) +
         section("EXIT STATUS", fact_items(kExitStatuses)) +
         section("ENVIRONMENT", fact_items(kEnvironment)) +
         section("EXAMPLES", example_items(verb.examples)) +
         section("SEE ALSO", see_also(verbs, verb.name));
}

}  // namespace wc::cli
