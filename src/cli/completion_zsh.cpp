#include "cli/completion.hpp"

namespace wc::cli {
namespace {

constexpr std::string_view kZshHead = R"script(#compdef weightcache
# zsh completion for weightcache: weightcache completion zsh

_weightcache_names() {
  local -a names socket
  local at=${words[(I)--socket]}
  (( at )) && socket=(--socket "${words[at + 1]}")
  names=("${(@f)$(weightcache "${socket[@]}" __complete names 2>/dev/null)}")
  names=("${(@)names:#}")
  compadd -a names
}

_weightcache_names_or_files() {
  _weightcache_names
  _files
}

_weightcache() {
  local context state line
  typeset -A opt_args
)script";

// For a text between single quotes that _arguments reads: [, ] and : are its own.
std::string quoted_for_zsh(std::string_view text) {
  std::string out;
  for (const char byte : text) {
    if (byte == '\'') {
      out += "'\\''";
    } else if (byte == '[' || byte == ']' || byte == ':' || byte == '\\') {
      out += '\\';
      out += byte;
    } else {
      out += byte;
    }
  }
  return out;
}

std::string action(const Option& option) {
  switch (option.completes) {
    case Completes::entry:
      return "_weightcache_names";
    case Completes::path:
      return "_files";
    case Completes::entry_or_path:
      return "_weightcache_names_or_files";
    case Completes::choice: {
      std::string words;
      for (const auto& choice : option.choices) words += (words.empty() ? "" : " ") + choice;
      return "(" + words + ")";
    }
    case Completes::nothing:
      break;
  }
  return " ";
}

std::string arguments(const Options& options, std::string_view indent) {
  std::string out;
  for (const auto& option : options.all()) {
    if (option.positional) {
      out += format(" \\\n{}'{}:{}:{}'", indent, option.required ? "" : ":",
                    quoted_for_zsh(option.names), action(option));
    } else if (option.value.empty()) {
      out += format(" \\\n{}'{}[{}]'", indent, long_name(option), quoted_for_zsh(option.help));
    } else {
      out +=
          format(" \\\n{}'{}{}[{}]:{}:{}'", indent, option.repeated ? "*" : "", long_name(option),
                 quoted_for_zsh(option.help), quoted_for_zsh(option.value), action(option));
    }
  }
  return out;
}

}  // namespace

std::string zsh_completion(const std::vector<Verb>& verbs, const Options& common) {
  std::string names;
  std::string cases;
  for (const auto& verb : verbs) {
    if (verb.hidden) continue;
    names += format("        '{}:{}'\n", verb.name, quoted_for_zsh(verb.summary));
    cases += format("        {}) _arguments{}{} \\\n            '--help[Tell about the verb]' ;;\n",
                    verb.alias.empty() ? verb.name : verb.name + "|" + verb.alias,
                    arguments(verb.options, "            "), arguments(common, "            "));
  }
  return std::string(kZshHead) + "  _arguments -C" + arguments(common, "    ") +
         " \\\n    '--help[Tell about the program]' \\\n    '--version[Tell the version]' \\\n"
         "    '1:verb:->verb' \\\n    '*::argument:->rest'\n"
         "  case $state in\n    verb)\n      local -a verbs=(\n" +
         names +
         "      )\n      _describe verb verbs\n      ;;\n    rest)\n      case $words[1] in\n" +
         cases +
         "      esac\n      ;;\n  esac\n}\n\n"
         "if [[ $funcstack[1] == _weightcache ]]; then\n  _weightcache \"$@\"\nelse\n"
         "  compdef _weightcache weightcache\nfi\n";
}

}  // namespace wc::cli
