// The program: finds the verb that the arguments name, lets it take its options, runs it, and turns
// what comes back into an exit status. The only file that knows the parser.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/call.hpp"
#include "cli/verb.hpp"

namespace wc::cli {

class Program {
 public:
  Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// The whole call, `arguments` without the program's name. Returns the exit status.
  int run(std::vector<std::string> arguments);

 private:
  struct Parsed;
  [[nodiscard]] Parsed parse(std::vector<std::string> arguments);
  int tell_wrong_call(const Verb* verb, const std::string& message) const;

  std::vector<Verb> verbs_;
  CommonOptions common_;
  Options common_options_;
};

}  // namespace wc::cli
