// Whether a Unix socket takes descriptors in at all. Where it does not (Linux 6.16 and later), the
// sender is refused with EPERM and nothing foreign ever reaches this process; on older kernels
// they come, and the packet that brings them is refused.
#pragma once

#include "base/fd.hpp"

namespace wc::daemon {

/// Of a listening socket: of the connections that come from now on. False: the kernel can't.
bool let_descriptors_in(FdView socket, bool in);

}  // namespace wc::daemon
