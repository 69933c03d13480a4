#include <memory>
#include <string>

#include "cli/call.hpp"
#include "cli/completion.hpp"
#include "cli/facts.hpp"
#include "cli/verb.hpp"

namespace wc::cli {
namespace {

std::string script_of(const std::string& shell, const std::vector<Verb>& verbs) {
  CommonOptions unused;
  Options common;
  add_common(common, unused);
  if (shell == "zsh") return zsh_completion(verbs, common);
  if (shell == "fish") return fish_completion(verbs, common);
  return bash_completion(verbs, common);
}

}  // namespace

Verb completion_verb(const std::vector<Verb>& verbs) {
  auto shell = std::make_shared<std::string>();
  Verb verb{.name = "completion", .summary = "print a completion script for a shell"};
  verb.description =
      "Prints what makes the shell complete verbs, options, paths, and the names of resident "
      "entries. An installed package has put the scripts where the shells find them.";
  verb.examples = {
      {"eval \"$(weightcache completion bash)\"", "in ~/.bashrc"},
      {"eval \"$(weightcache completion zsh)\"", "in ~/.zshrc, behind compinit"},
      {"weightcache completion fish > ~/.config/fish/completions/weightcache.fish", "once"}};
  auto& option = verb.options.choice("SHELL", {"bash", "zsh", "fish"}, *shell, "The shell");
  option.positional = true;
  option.required = true;
  verb.run = [shell, &verbs](Call& call) {
    const std::string script = script_of(*shell, verbs);
    return call.answer(Json{{"shell", *shell}, {"script", script}}, script);
  };
  return verb;
}

}  // namespace wc::cli
