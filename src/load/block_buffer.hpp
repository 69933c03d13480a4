// A thread's own buffer of one block, where the device stages none: page-aligned, in huge pages
// where the system gives them on request.
#pragma once

#include <span>

#include <sys/mman.h>

#include "base/mapping.hpp"
#include "load/digest.hpp"

namespace wc::load {

class BlockBuffer {
 public:
  /// `bytes` of it, at most a block. Errors: io.
  [[nodiscard]] Result<std::span<std::byte>> get(std::uint64_t bytes) {
    if (memory_.size() == 0) {
      memory_ = TRY(Mapping::map(FdView(), {.bytes = kDigestBlockBytes,
                                            .protection = PROT_READ | PROT_WRITE,
                                            .flags = MAP_PRIVATE | MAP_ANONYMOUS,
                                            .alignment = kHugePageBytes}));
      (void)::madvise(memory_.data(), memory_.size(), MADV_HUGEPAGE);
    }
    return memory_.bytes().first(bytes);
  }

 private:
  Mapping memory_;
};

}  // namespace wc::load
