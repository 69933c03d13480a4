// memcpy for bytes that this core will not read again soon: large copies go past the cache, which
// saves reading the destination before it is overwritten, and leaves the cache to what is next.
#pragma once

#include <cstddef>

namespace wc::memory {

/// The ranges may not overlap. What was copied is visible to other threads as after memcpy.
void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes);

}  // namespace wc::memory
