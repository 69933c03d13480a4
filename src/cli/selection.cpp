#include "cli/selection.hpp"

#include <utility>

namespace wc::cli {
namespace {

const char* or_null(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

}  // namespace

wc_selector Selection::selector() const {
  wc_selector selector = WC_SELECTOR_INIT;
  selector.text = or_null(text);
  selector.form = or_null(form);
  selector.device = or_null(device);
  selector.rank = rank;
  selector.world = world;
  return selector;
}

Option& add_selection(Options& options, Selection& out, std::string help) {
  auto& name = options.argument("NAME", out.text, std::move(help));
  name.completes = Completes::entry;
  options.text("--form", "FORM", out.form, "The form: raw, or what an engine made of it");
  options.text("--device", "DEVICE", out.device, "The device: cpu, cuda:N or a GPU's UUID");
  options.number("--rank", out.rank, "The rank, of an entry that is cut for several");
  options.number("--world", out.world, "How many ranks it is cut for");
  return name;
}

}  // namespace wc::cli
