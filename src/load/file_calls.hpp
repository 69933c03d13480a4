// What loading asks of the operating system, behind one interface, so that tests can make the n-th
// call fail, come short, or find another file. Thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include <sys/uio.h>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace wc::load {

class FileCalls {
 public:
  virtual ~FileCalls() = default;
  /// preadv2(2): bytes read, or -1 and errno.
  [[nodiscard]] virtual ssize_t read(FdView fd, std::span<const iovec> places, std::uint64_t offset,
                                     int flags) = 0;
  /// A new open file of the same inode, for reading, with further O_ flags. Errors: io.
  [[nodiscard]] virtual Result<Fd> reopen(FdView fd, int flags) = 0;
  /// fcntl(2): the answer, or -1 and errno.
  [[nodiscard]] virtual int control(FdView fd, int command, long argument) = 0;
};

/// The operating system's own.
[[nodiscard]] FileCalls& system_file_calls();

}  // namespace wc::load
