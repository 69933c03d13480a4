// Which entry a verb is about: NAME, NAME@GENERATION, @FINGERPRINT or a checkpoint's path, narrowed
// by form, device and rank.
#pragma once

#include <cstdint>
#include <string>

#include "cli/library.hpp"
#include "cli/options.hpp"

namespace wc::cli {

struct Selection {
  std::string text;
  std::string form;
  std::string device;
  std::uint32_t rank = 0;
  std::uint32_t world = 0;

  /// A view of this, for the library.
  [[nodiscard]] wc_selector selector() const;
};

/// NAME, which is returned, and the options that narrow it.
Option& add_selection(Options& options, Selection& out, std::string help);

}  // namespace wc::cli
