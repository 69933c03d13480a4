// The system's file calls with a hook in front of each read, and leases that can be refused.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "load/file_calls.hpp"

namespace wc::support {

class FileHooks final : public load::FileCalls {
 public:
  /// What a read answers instead of reading: bytes, or an errno as a negative number; nothing: it
  /// reads. Gets the number of the read, from 1 on. Probes of the page cache are no reads.
  std::function<std::optional<ssize_t>(std::uint64_t number)> on_read;
  /// Where each read goes to, before it.
  std::function<void(std::span<const iovec> places)> on_places;
  /// At most so many bytes come at once; 0: no limit.
  std::atomic<std::uint64_t> most_bytes = 0;
  std::atomic<bool> grant_leases = true;
  std::atomic<bool> grant_reopening = true;
  std::atomic<bool> grant_direct = true;

  [[nodiscard]] std::uint64_t reads() const { return reads_; }
  void restart() { reads_ = 0; }

  ssize_t read(FdView fd, std::span<const iovec> places, std::uint64_t offset, int flags) override {
    if (flags != 0) return load::system_file_calls().read(fd, places, offset, flags);
    const std::uint64_t number = ++reads_;
    if (on_places) on_places(places);
    if (on_read) {
      if (const auto answer = on_read(number)) {
        if (*answer >= 0) return *answer;
        errno = static_cast<int>(-*answer);
        return -1;
      }
    }
    iovec first = places.front();
    const std::uint64_t limit = most_bytes;
    if (limit == 0) return load::system_file_calls().read(fd, places, offset, flags);
    first.iov_len = std::min<std::size_t>(first.iov_len, limit);
    return load::system_file_calls().read(fd, std::span(&first, 1), offset, flags);
  }

  Result<Fd> reopen(FdView fd, int flags) override {
    if (!grant_reopening) return fail_os(Code::io, ENOENT, "open");
    if (flags != 0 && !grant_direct) return fail_os(Code::io, EINVAL, "open for direct reads");
    return load::system_file_calls().reopen(fd, flags);
  }

  int control(FdView fd, int command, long argument) override {
    if (!grant_leases) {
      errno = EAGAIN;
      return -1;
    }
    return load::system_file_calls().control(fd, command, argument);
  }

 private:
  std::atomic<std::uint64_t> reads_ = 0;
};

}  // namespace wc::support
