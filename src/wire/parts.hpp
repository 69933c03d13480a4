// The walk over a message's variable parts that the layout's verifier does not do: every limit, and
// that no part is used twice (a packet of 64 KiB whose texts are all the same one would unpack to
// gigabytes). Inside this folder only.
#pragma once

#include "base/result.hpp"
#include "messages_generated.h"

namespace wc::wire {

/// `message` has been verified and lies in a packet of `packet_bytes`. Errors: `code`, naming the
/// field and the limit.
[[nodiscard]] Result<> check_parts(Code code, const fb::Message& message, std::size_t packet_bytes);

}  // namespace wc::wire
