// From a decoded message to the one small function that answers it.
#pragma once

#include <vector>

#include "base/fd.hpp"
#include "daemon/core.hpp"

namespace wc::daemon {

/// Answers, or lets the session part where the message breaks the protocol. What is left in
/// `descriptors` was not taken.
void dispatch(Core& core, Session& session, const wire::fb::Message& message,
              std::vector<Fd>& descriptors);

}  // namespace wc::daemon
