// The known word that somebody who mistyped it meant.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wc::cli {

/// The one with the fewest letters added, left out, changed or swapped, if those are few for its
/// length.
[[nodiscard]] std::optional<std::string> nearest(std::string_view word,
                                                 const std::vector<std::string>& known);

}  // namespace wc::cli
