#include "cli/completion.hpp"

namespace wc::cli {
namespace {

constexpr std::string_view kFishHead =
    R"script(# fish completion for weightcache: weightcache completion fish

function __weightcache_names
    set -l words (commandline -opc)
    set -l socket
    if set -l at (contains -i -- --socket $words)
        set socket --socket $words[(math $at + 1)]
    end
    weightcache $socket __complete names 2>/dev/null
end

complete -c weightcache -f
)script";

std::string quoted_for_fish(std::string_view text) {
  std::string out = "'";
  for (const char byte : text) {
    if (byte == '\'' || byte == '\\') out += '\\';
    out += byte;
  }
  return out + "'";
}

// What may stand behind it; `-x` needs a value and offers no files.
std::string values(const Option& option) {
  switch (option.completes) {
    case Completes::entry:
      return " -a '(__weightcache_names)'";
    case Completes::path:
      return " -F";
    case Completes::entry_or_path:
      return " -F -a '(__weightcache_names)'";
    case Completes::choice: {
      std::string words;
      for (const auto& choice : option.choices) words += (words.empty() ? "" : " ") + choice;
      return " -a " + quoted_for_fish(words);
    }
    case Completes::nothing:
      break;
  }
  return "";
}

std::string line(std::string_view condition, const Option& option) {
  std::string out = "complete -c weightcache";
  if (!condition.empty()) out += " -n " + quoted_for_fish(condition);
  if (option.positional) return out + values(option) + "\n";
  out += " -l " + long_name(option).substr(2) + " -d " + quoted_for_fish(option.help);
  if (option.value.empty()) return out + "\n";
  return out + (option.completes == Completes::path ? " -r" : " -x") + values(option) + "\n";
}

}  // namespace

std::string fish_completion(const std::vector<Verb>& verbs, const Options& common) {
  std::string out(kFishHead);
  for (const auto& option : common.all()) out += line("", option);
  out += "complete -c weightcache -l help -d 'Tell about the program or a verb'\n";
  for (const auto& verb : verbs) {
    if (verb.hidden) continue;
    out += format("complete -c weightcache -n __fish_use_subcommand -a {} -d {}\n", verb.name,
                  quoted_for_fish(verb.summary));
    const std::string seen =
        "__fish_seen_subcommand_from " + verb.name + (verb.alias.empty() ? "" : " " + verb.alias);
    for (const auto& option : verb.options.all()) out += line(seen, option);
  }
  return out;
}

}  // namespace wc::cli
