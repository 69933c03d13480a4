#include "cli/completion.hpp"

namespace wc::cli {
namespace {

constexpr std::string_view kBashHead =
    R"script(# bash completion for weightcache: weightcache completion bash

# Offers the lines that begin with what is typed. compgen -W would expand them.
__weightcache_lines() {
  local line
  while IFS= read -r line; do
    [[ $line == "$cur"* ]] && COMPREPLY+=("$(printf '%q' "$line")")
  done
}

__weightcache_names() {
  __weightcache_lines < <(weightcache "${socket[@]}" __complete names 2>/dev/null)
}

__weightcache_paths() {
  compopt -o filenames 2>/dev/null
  local line
  while IFS= read -r line; do
    COMPREPLY+=("$line")
  done < <(compgen -f -- "$cur")
}

__weightcache_words() {
  __weightcache_lines < <(printf '%s\n' "$@")
}

_weightcache() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} verb='' at
  local -a socket=()
  COMPREPLY=()
  for ((at = 1; at < COMP_CWORD; at++)); do
    case ${COMP_WORDS[at]} in
      --socket) socket=(--socket "${COMP_WORDS[at + 1]}"); ((at++)) ;;
      --progress) ((at++)) ;;
      -*) ;;
      *) [[ -z $verb ]] && verb=${COMP_WORDS[at]} ;;
    esac
  done
)script";

std::string offer(const Option& option) {
  switch (option.completes) {
    case Completes::entry:
      return "__weightcache_names";
    case Completes::path:
      return "__weightcache_paths";
    case Completes::entry_or_path:
      return "__weightcache_names; __weightcache_paths";
    case Completes::choice: {
      std::string words = "__weightcache_words";
      for (const auto& choice : option.choices) words += " " + choice;
      return words;
    }
    case Completes::nothing:
      break;
  }
  return ":";
}  // namespace wc::cli

std::string pattern(const Verb& verb) {
  return verb.alias.empty() ? verb.name : verb.name + "|" + verb.alias;
}

// The value behind an option.
std::string values(const std::vector<Verb>& verbs, const Options& common) {
  std::string out = "  case $prev in\n";
  for (const auto& option : common.all()) {
    if (option.value.empty()) continue;
    out += format("    {}) {}; return ;;\n", long_name(option), offer(option));
  }
  out += "  esac\n  case $verb:$prev in\n";
  for (const auto& verb : verbs) {
    for (const auto& option : verb.options.all()) {
      if (verb.hidden || option.positional || option.value.empty()) continue;
      out += format("    {}:{}) {}; return ;;\n", verb.name, long_name(option), offer(option));
      if (verb.alias.empty()) continue;
      out += format("    {}:{}) {}; return ;;\n", verb.alias, long_name(option), offer(option));
    }
  }
  return out + "  esac\n";
}

std::string flags(const Options& options) {
  std::string out;
  for (const auto& option : options.all()) {
    if (!option.positional) out += " " + long_name(option);
  }
  return out;
}

}  // namespace

std::string bash_completion(const std::vector<Verb>& verbs, const Options& common) {
  std::string out = std::string(kBashHead) + values(verbs, common);
  const std::string shared = flags(common) + " --help";
  std::string names;
  std::string options;
  std::string arguments;
  for (const auto& verb : verbs) {
    if (verb.hidden) continue;
    names += " " + verb.name;
    options += format("      {}) __weightcache_words{}{} ;;\n", pattern(verb), flags(verb.options),
                      shared);
    std::string offers;
    for (const auto& option : verb.options.all()) {
      if (option.positional) offers += offer(option) + "; ";
    }
    if (!offers.empty()) arguments += format("    {}) {};;\n", pattern(verb), offers);
  }
  out += "  if [[ $cur == -* ]]; then\n    case $verb in\n";
  out += format("      '') __weightcache_words{} --version ;;\n", shared) + options;
  out += "    esac\n    return\n  fi\n  case $verb in\n";
  out += format("    '') __weightcache_words{} ;;\n", names) + arguments;
  return out + "  esac\n}\ncomplete -F _weightcache weightcache\n";
}

}  // namespace wc::cli
