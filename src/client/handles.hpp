// Handles between the wire's words and memory's. Inside this folder only.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"
#include "memory/types.hpp"
#include "wire/codec.hpp"

namespace wc::client {

/// What crosses as bytes, and the descriptor that goes beside it, if one does (borrowed).
struct OutgoingHandle {
  wire::fb::HandleUnion handle;
  FdView descriptor;
};
[[nodiscard]] OutgoingHandle outgoing(const memory::Handle& handle);

/// `descriptor` is used where the handle says that one came. Errors: corrupt (no handle at all).
[[nodiscard]] Result<memory::Handle> handle_from(const wire::fb::HandleUnion& handle,
                                                 Fd descriptor);

}  // namespace wc::client
