// What an entry is, in the words that several verbs share.
#pragma once

#include <string>

#include "cli/library.hpp"
#include "cli/terminal.hpp"

namespace wc::cli {

/// "103 tensors, 86.6 MiB on cpu".
[[nodiscard]] std::string content_text(const wc_entry_info& entry);
/// `"llama-8b"`, and for a member of a set "rank 1 of 4" behind it. Printable.
[[nodiscard]] std::string quoted_name(const wc_entry_info& entry);
/// "published", "loading 42%", "published, pinned".
[[nodiscard]] std::string state_text(const wc_entry_info& entry);
[[nodiscard]] Colour state_colour(const wc_entry_info& entry);
/// "raw", or the first words of an engine's form. Printable.
[[nodiscard]] std::string form_text(const wc_entry_info& entry);

}  // namespace wc::cli
