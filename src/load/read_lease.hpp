// A read lease (F_SETLEASE) on an open file: while it holds, nobody can open the file for writing
// or truncate it without the kernel telling us, so what is read is one state of the file. Only a
// file's owner, or CAP_LEASE, may have one, and only where nobody has the file open for writing;
// elsewhere the receipt is all there is. No signal is sent for it: a break is found by asking.
#pragma once

#include "load/file_calls.hpp"

namespace wc::load {

class ReadLease {
 public:
  ReadLease() = default;
  /// Tries. The descriptor must be open for reading only, and outlive the lease.
  ReadLease(FileCalls& calls, FdView fd);
  ReadLease(ReadLease&& other) noexcept
      : calls_(std::exchange(other.calls_, nullptr)), fd_(other.fd_) {}
  ReadLease& operator=(ReadLease&&) = delete;
  ~ReadLease();

  /// It was granted.
  [[nodiscard]] bool held() const { return calls_ != nullptr; }
  /// It was granted, and somebody has since begun to open the file for writing. He waits until this
  /// lease goes, 45 s at most.
  [[nodiscard]] bool broken() const;

 private:
  FileCalls* calls_ = nullptr;
  FdView fd_;
};

}  // namespace wc::load
