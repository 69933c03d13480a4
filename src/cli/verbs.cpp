#include "cli/verb.hpp"

namespace wc::cli {

void add_verbs(std::vector<Verb>& verbs) {
  for (const auto make : {serve_verb, load_verb, ls_verb, attach_verb, wait_verb, verify_verb,
                          inspect_verb, leases_verb, evict_verb, pin_verb, unpin_verb, drain_verb,
                          stop_verb, status_verb, doctor_verb, complete_verb}) {
    verbs.push_back(make());
  }
  verbs.push_back(completion_verb(verbs));
  verbs.push_back(man_verb(verbs));
}

}  // namespace wc::cli
