// A verb of the command line: what it is called, what people are told about it, what it accepts,
// and what it does. Each verb_NAME.cpp makes one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/options.hpp"

namespace wc::cli {

class Call;

struct Example {
  std::string command;
  std::string means;
};

struct Verb {
  std::string name;
  std::string alias = {};
  std::string summary = {};      // one line, an imperative, no full stop
  std::string description = {};  // paragraphs, separated by empty lines
  std::vector<Example> examples = {};
  bool hidden = false;  // for scripts of this project; in no document
  Options options = {};
  std::function<Result<>(Call&)> run = {};
};

// In the order in which --help lists them.
Verb serve_verb();
Verb load_verb();
Verb ls_verb();
Verb attach_verb();
Verb wait_verb();
Verb verify_verb();
Verb inspect_verb();
Verb leases_verb();
Verb evict_verb();
Verb pin_verb();
Verb unpin_verb();
Verb drain_verb();
Verb stop_verb();
Verb status_verb();
Verb doctor_verb();
/// Its scripts are made from the verbs that it is given; the list must outlive it.
Verb completion_verb(const std::vector<Verb>& verbs);

// Hidden ones: what the shells' completion asks, and the source of the manual pages.
Verb complete_verb();
Verb man_verb(const std::vector<Verb>& verbs);

/// Puts all of them into a list, whose address must stay.
void add_verbs(std::vector<Verb>& verbs);

}  // namespace wc::cli
