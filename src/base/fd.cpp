#include "base/fd.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace wc {

void Fd::reset() {
  if (number_ >= 0) ::close(std::exchange(number_, -1));  // EINTR on Linux means closed
}

Result<Fd> duplicate(FdView fd) {
  const int copy = ::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return fail_errno("fcntl(F_DUPFD_CLOEXEC)");
  return Fd(copy);
}

}  // namespace wc
