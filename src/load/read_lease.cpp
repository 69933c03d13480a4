#include "load/read_lease.hpp"

#include <fcntl.h>
#include <signal.h>

namespace wc::load {

ReadLease::ReadLease(FileCalls& calls, FdView fd) : fd_(fd) {
  // A break sends SIGIO, which ends a process that does not expect it. Until the owner can be taken
  // off (F_SETLEASE puts it there), it is a signal that is ignored by default.
  if (calls.control(fd, F_SETSIG, SIGURG) != 0) return;
  if (calls.control(fd, F_SETLEASE, F_RDLCK) != 0) return;
  calls_ = &calls;
  (void)calls.control(fd, F_SETOWN, 0);
}

ReadLease::~ReadLease() {
  if (calls_ != nullptr) (void)calls_->control(fd_, F_SETLEASE, F_UNLCK);
}

bool ReadLease::broken() const {
  return calls_ != nullptr && calls_->control(fd_, F_GETLEASE, 0) != F_RDLCK;
}

}  // namespace wc::load
