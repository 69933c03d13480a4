#include "cli/help.hpp"

#include <algorithm>
#include <span>
#include <string_view>

#include "cli/facts.hpp"
#include "cli/text.hpp"

namespace wc::cli {
namespace {

constexpr std::size_t kUsual = 80;
constexpr std::size_t kWidest = 100;  // longer lines are hard to read

std::size_t usable(std::size_t columns) {
  return columns == 0 ? kUsual : std::clamp(columns, std::size_t{40}, kWidest);
}

// "  label   what it means, broken into lines below itself".
std::string row(std::string_view label, std::string_view means, std::size_t at,
                std::size_t columns) {
  std::string line = "  " + std::string(label);
  if (line.size() + 2 > at) {
    line += '\n';
    line.append(at, ' ');
  } else {
    line.append(at - line.size(), ' ');
  }
  return line + wrapped(means, columns, at) + '\n';
}

// An empty line between two of them, none behind the last.
std::string paragraphs(std::string_view text, std::size_t columns) {
  std::string out;
  while (!text.empty()) {
    const std::string_view paragraph = text.substr(0, text.find("\n\n"));
    text.remove_prefix(std::min(text.size(), paragraph.size() + 2));
    out += (out.empty() ? "" : "\n") + wrapped(paragraph, columns, 0) + "\n";
  }
  return out;
}

std::string option_rows(const Options& options, bool positional, std::size_t columns) {
  constexpr std::size_t kColumn = 26;
  std::string rows;
  for (const auto& option : options.all()) {
    if (option.positional == positional) {
      rows += row(option_label(option), option.help, kColumn, columns);
    }
  }
  return rows;
}

std::string titled(std::string_view title, const std::string& rows) {
  return rows.empty() ? "" : "\n" + std::string(title) + ":\n" + rows;
}

std::string fact_rows(std::span<const Fact> facts, std::size_t at, std::size_t columns) {
  std::string rows;
  for (const auto& fact : facts) rows += row(fact.name, fact.means, at, columns);
  return rows;
}

std::string example_rows(const std::vector<Example>& examples) {
  std::string rows;
  for (const auto& example : examples) {
    rows += format("  {}\n      {}\n", example.command, example.means);
  }
  return rows;
}

}  // namespace

std::string option_label(const Option& option) {
  if (option.positional) return option.required ? option.names : "[" + option.names + "]";
  std::string label = option.names;
  if (const auto comma = label.find(','); comma != std::string::npos) label.insert(comma + 1, " ");
  return option.value.empty() ? label : label + " " + option.value;
}

std::string synopsis(const Verb& verb) {
  std::string text = verb.name + " [OPTIONS]";
  for (const auto& option : verb.options.all()) {
    if (option.positional) text += " " + option_label(option);
  }
  return text;
}

std::string usage_line(const Verb& verb) { return "usage: weightcache " + synopsis(verb) + "\n"; }

std::string usage_line() { return "usage: weightcache VERB [OPTIONS] ...\n"; }

std::string program_help(const std::vector<Verb>& verbs, const Options& common,
                         std::size_t columns) {
  constexpr std::size_t kVerbColumn = 15;
  columns = usable(columns);
  std::string rows;
  for (const auto& verb : verbs) {
    if (verb.hidden) continue;
    const std::string label = verb.alias.empty() ? verb.name : verb.name + ", " + verb.alias;
    rows += row(label, verb.summary, kVerbColumn, columns);
  }
  return paragraphs(kPurpose, columns) + "\n" + usage_line() + titled("verbs", rows) +
         titled("first steps", fact_rows(kFirstSteps, 36, columns)) +
         titled("options of every verb",
                option_rows(common, false, columns) +
                    row("-h, --help", "Tell about the verb, with examples", 26, columns)) +
         titled("exit status", fact_rows(kExitStatuses, 6, columns)) +
         "\nMore about a verb: weightcache help VERB, or man weightcache-VERB\n";
}

std::string verb_help(const Verb& verb, const Options& common, std::size_t columns) {
  columns = usable(columns);
  return usage_line(verb) + "\n" + paragraphs(verb.description, columns) +
         titled("arguments", option_rows(verb.options, true, columns)) +
         titled("options", option_rows(verb.options, false, columns)) +
         titled("options of every verb", option_rows(common, false, columns)) +
         titled(verb.examples.size() == 1 ? "example" : "examples", example_rows(verb.examples));
}

}  // namespace wc::cli
