#include "cli/entry_text.hpp"

#include "base/units.hpp"
#include "cli/text.hpp"

namespace wc::cli {

std::string content_text(const wc_entry_info& entry) {
  return format("{}, {} on {}", counted(entry.tensors, "tensor"), format_bytes(entry.bytes),
                printable(or_empty(entry.device)));
}

std::string quoted_name(const wc_entry_info& entry) {
  std::string text = format("\"{}\"", printable(or_empty(entry.name)));
  if (entry.world > 1) text += format(" rank {} of {}", entry.rank, entry.world);
  return text;
}

std::string state_text(const wc_entry_info& entry) {
  std::string text = wc_state_name(entry.state);
  if (entry.state == WC_LOADING && entry.total_bytes > 0) {
    const auto share =
        static_cast<double>(entry.done_bytes) / static_cast<double>(entry.total_bytes);
    text += format(" {:.0f}%", share * 100);
  }
  if (entry.pinned != 0) text += ", pinned";
  return text;
}

Colour state_colour(const wc_entry_info& entry) {
  switch (entry.state) {
    case WC_PUBLISHED:
      return Colour::green;
    case WC_LOADING:
    case WC_DRAINING:
      return Colour::yellow;
    case WC_FAILED:
      return Colour::red;
    default:
      return Colour::dim;
  }
}

std::string form_text(const wc_entry_info& entry) {
  const std::string text = or_empty(entry.form);
  return text.empty() ? "raw" : printable(text);
}

}  // namespace wc::cli
