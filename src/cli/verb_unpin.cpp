#include <memory>

#include "cli/pinning.hpp"
#include "cli/verb.hpp"

namespace wc::cli {

Verb unpin_verb() {
  auto selection = std::make_shared<Selection>();
  Verb verb{.name = "unpin", .summary = "take a pin back"};
  verb.description = "The entry stays resident, and may be evicted from now on.";
  verb.examples = {{"weightcache unpin Llama-3-8B", "let it go when somebody evicts it"}};
  add_selection(verb.options, *selection, "The entry to unpin");
  verb.run = [selection](Call& call) { return set_pinned(*selection, false, call); };
  return verb;
}

}  // namespace wc::cli
