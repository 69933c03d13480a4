#include <memory>

#include "cli/pinning.hpp"
#include "cli/verb.hpp"

namespace wc::cli {

Verb pin_verb() {
  auto selection = std::make_shared<Selection>();
  Verb verb{.name = "pin", .summary = "keep an entry until it is unpinned"};
  verb.description = "A pinned entry is not evicted without --force, whoever needs the room.";
  verb.examples = {{"weightcache pin Llama-3-8B", "keep it"}};
  add_selection(verb.options, *selection, "The entry to keep");
  verb.run = [selection](Call& call) { return set_pinned(*selection, true, call); };
  return verb;
}

}  // namespace wc::cli
