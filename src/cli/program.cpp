#include "cli/program.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "cli/facts.hpp"
#include "cli/help.hpp"
#include "cli/nearest.hpp"
#include "cli/terminal.hpp"

namespace wc::cli {

// What the arguments say: a verb to run, a text to print, or what is wrong with them.
struct Program::Parsed {
  const Verb* verb = nullptr;
  std::optional<std::string> text = std::nullopt;
  std::optional<std::string> wrong = std::nullopt;
};

namespace {

// An option's own error becomes the parser's, which knows where it stands.
void take(const Option& option, const std::string& value) {
  const auto taken = option.take(value);
  if (!taken) throw CLI::ValidationError(long_name(option), taken.error().message);
}

void declare(CLI::App& app, const Options& options) {
  for (const auto& option : options.all()) {
    if (option.value.empty()) {
      app.add_flag_callback(option.names, [&option] { take(option, ""); });
      continue;
    }
    auto* const declared = app.add_option_function<std::vector<std::string>>(
        option.names, [&option](const std::vector<std::string>& values) {
          for (const auto& value : values) take(option, value);
        });
    declared->type_name(option.value)->required(option.required);
    declared->expected(1);
    declared->allow_extra_args(option.repeated);
    if (option.repeated) {
      declared->take_all();
    } else {
      declared->take_last();
    }
  }
}

// The parser's words in the form of this project's: lower case, no full stop.
std::string worded(std::string message) {
  const auto required = message.find(": 1 required ");
  if (required != std::string::npos) return message.substr(0, required) + " needs a value";
  const bool is_sentence = message.size() > 1 && message[0] >= 'A' && message[0] <= 'Z' &&
                           message[1] >= 'a' && message[1] <= 'z';
  if (is_sentence) message[0] = static_cast<char>(message[0] - 'A' + 'a');
  return message.substr(0, message.find_last_not_of(" .\n") + 1);
}

bool is_verb(const std::string& word, const std::vector<Verb>& verbs) {
  return std::ranges::any_of(
      verbs, [&](const Verb& verb) { return verb.name == word || verb.alias == word; });
}

std::string no_such_verb(const std::string& word, const std::vector<Verb>& verbs) {
  std::vector<std::string> names;
  for (const auto& verb : verbs) {
    if (verb.hidden) continue;
    names.push_back(verb.name);
    if (!verb.alias.empty()) names.push_back(verb.alias);
  }
  const auto near = nearest(word, names);
  return format("there is no verb \"{}\"{}", word,
                near ? format("; did you mean \"{}\"?", *near) : "");
}

}  // namespace

Program::Program() {
  constexpr std::size_t kRoom = 32;
  verbs_.reserve(kRoom);  // two of the verbs look at the others
  add_verbs(verbs_);
  add_common(common_options_, common_);
}

Program::Parsed Program::parse(std::vector<std::string> arguments) {
  CLI::App root("", "weightcache");
  root.set_help_flag("-h,--help");
  root.set_version_flag("--version", format("weightcache {}", wc_version()));
  root.require_subcommand(0, 1);
  declare(root, common_options_);
  std::vector<std::pair<const CLI::App*, const Verb*>> apps;
  for (const auto& verb : verbs_) {
    CLI::App* const app = root.add_subcommand(verb.name, verb.summary);
    if (!verb.alias.empty()) app->alias(verb.alias);
    declare(*app, verb.options);
    declare(*app, common_options_);
    apps.emplace_back(app, &verb);
  }
  root.allow_extras();  // of the root alone: a word that is no verb
  const auto chosen = [&]() -> const Verb* {
    for (const auto& [app, verb] : apps) {
      if (app->parsed() || root.got_subcommand(verb->name)) return verb;
    }
    return nullptr;
  };
  const std::size_t columns = terminal_at(FdView(STDOUT_FILENO)).columns;
  try {
    std::reverse(arguments.begin(), arguments.end());  // as the parser wants a vector
    root.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    const Verb* const verb = chosen();
    return {verb, verb != nullptr ? verb_help(*verb, common_options_, columns)
                                  : program_help(verbs_, common_options_, columns)};
  } catch (const CLI::CallForVersion& version) {
    return {nullptr, std::string(version.what()) + "\n"};
  } catch (const CLI::ParseError& error) {
    return {chosen(), std::nullopt, worded(error.what())};
  }
  const Verb* const verb = chosen();
  if (verb != nullptr) return {verb};
  const auto words = root.remaining();
  return {nullptr, std::nullopt,
          words.empty() ? "a verb is missing" : no_such_verb(words.front(), verbs_)};
}

int Program::tell_wrong_call(const Verb* verb, const std::string& message) const {
  tell_failure(Error{Code::invalid_argument, message, {}}, common_.json);
  const std::string usage = verb != nullptr ? usage_line(*verb) : usage_line();
  const std::string more = verb != nullptr ? format("more: weightcache {} --help\n", verb->name)
                                           : "more: weightcache --help\n";
  write_if_possible(FdView(STDERR_FILENO), usage + more);
  return exit_status(Code::invalid_argument);
}

int Program::run(std::vector<std::string> arguments) {
  // "help" and "help load", as people try them; a word that is no verb is told as such.
  if (!arguments.empty() && arguments.front() == "help") {
    arguments.erase(arguments.begin());
    if (arguments.empty() || is_verb(arguments.front(), verbs_)) arguments.emplace_back("--help");
  }
  // Known before the parse, which may fail before it comes to --json.
  common_.json = std::ranges::find(arguments, "--json") != arguments.end();
  const Parsed parsed = parse(std::move(arguments));
  if (parsed.text) {
    const auto written = write_all(FdView(STDOUT_FILENO), *parsed.text);
    if (!written) tell_failure(written.error(), false);
    return written ? 0 : exit_status(written.error().code);
  }
  if (parsed.wrong) return tell_wrong_call(parsed.verb, *parsed.wrong);

  auto signals = Signals::install(common_.json);
  if (!signals) {
    tell_failure(signals.error(), common_.json);
    return exit_status(signals.error().code);
  }
  show_warnings();
  Call call(common_, *signals, parsed.verb->name);
  const auto done = parsed.verb->run(call);
  if (done) return 0;
  tell_failure(done.error(), common_.json && !call.answered());
  return exit_status(done.error().code);
}

}  // namespace wc::cli
