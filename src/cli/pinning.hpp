// What `pin` and `unpin` share: one order, given or taken back.
#pragma once

#include "base/result.hpp"
#include "cli/call.hpp"
#include "cli/selection.hpp"

namespace wc::cli {

Result<> set_pinned(const Selection& selection, bool pinned, Call& call);

}  // namespace wc::cli
