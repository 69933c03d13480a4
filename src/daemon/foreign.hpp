// A descriptor that somebody sent, looked at where it can do no harm: in a child of the helper.
// A file's own file system runs whenever its size is asked for and whenever a copy of it is closed;
// one that is answered by a process (FUSE), or by another machine, can hold whoever does that for
// as long as it likes, beyond SIGKILL. So no such descriptor ever enters the daemon.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"

namespace wc::daemon {

/// Whether closing this descriptor waits for nobody: a character device (what CUDA's drivers
/// export), an anonymous inode, a memfd or another file of memory. What a device's descriptor
/// holds, how much, and whether it is memory at all can't be told without CUDA. May wait without an
/// end. Errors: invalid_argument (what it is instead), io.
[[nodiscard]] Result<> check_foreign(FdView descriptor);

}  // namespace wc::daemon
