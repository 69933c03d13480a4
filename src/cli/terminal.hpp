// What is behind a descriptor: a terminal of some width that shows colours, or something that
// reads text. Asked once, passed by reference.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/fd.hpp"

namespace wc::cli {

struct Terminal {
  bool interactive = false;
  bool colours = false;
  std::size_t columns = 0;  // 0: no limit
};

/// Colours need a terminal that is not "dumb", and no $NO_COLOR (https://no-color.org: any value
/// but an empty one counts).
[[nodiscard]] Terminal terminal_at(FdView fd);

enum class Colour { none, bold, dim, red, green, yellow };

/// The text in a colour, where the terminal shows colours.
[[nodiscard]] std::string painted(std::string_view text, Colour colour, const Terminal& terminal);

/// All of it, or an error. Errors: io.
[[nodiscard]] Result<> write_all(FdView fd, std::string_view text);
/// For remarks and progress: where nobody reads, nobody has to be told.
void write_if_possible(FdView fd, std::string_view text);

}  // namespace wc::cli
