// Host memory as a Device. Segments are memfds; exporting one seals it for good, so everything that
// writes (views for writing, whoever it was lent to) must be gone before. Views of at least 2 MiB
// are aligned to 2 MiB, so that huge pages map whole.
//
// A reader chooses `shared_read`, or `private_copy`: copy-on-write, nothing reserved, nothing
// populated. WEIGHTCACHE_STRICT=1, read once when the device is opened, makes every reader
// `shared_read`, so that tests find whoever writes.
#pragma once

#include <memory>

#include "memory/device.hpp"
#include "memory/host/headroom.hpp"

namespace wc::memory {

struct HostOptions {
  bool huge_pages = true;
  SystemFacts facts = {};
};

/// Errors: io (/proc can't be read).
[[nodiscard]] Result<std::unique_ptr<Device>> open_host_device(const HostOptions& options = {});

}  // namespace wc::memory
