#include "cli/pinning.hpp"

#include "cli/text.hpp"

namespace wc::cli {

Result<> set_pinned(const Selection& selection, bool pinned, Call& call) {
  const auto connection = TRY(call.connect());
  const wc_selector selector = selection.selector();
  TRY(check(wc_pin(connection.get(), &selector, pinned ? 1 : 0)));
  const Json document = {{"name", selection.text}, {"pinned", pinned}};
  const std::string name = printable(selection.text);
  return call.answer(document,
                     pinned ? format("pinned \"{}\": it is evicted only with --force\n", name)
                            : format("unpinned \"{}\": it may be evicted\n", name));
}

}  // namespace wc::cli
