// Ownership of received descriptors, apart from the socket, so that a test can hand in control data
// that no kernel of today sends. Inside this folder only.
#pragma once

#include <vector>

#include <sys/socket.h>

#include "base/fd.hpp"

namespace wc::wire {

/// Takes over every descriptor in the header's control data, whatever other control messages stand
/// between them, within the length that the kernel returned.
void own_descriptors(const msghdr& header, std::vector<Fd>& descriptors);

}  // namespace wc::wire
