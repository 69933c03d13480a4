#include "load/file_calls.hpp"

#include <algorithm>
#include <climits>

#include <fcntl.h>

namespace wc::load {
namespace {

class SystemFileCalls final : public FileCalls {
 public:
  ssize_t read(FdView fd, std::span<const iovec> places, std::uint64_t offset, int flags) override {
    const auto count = static_cast<int>(std::min<std::size_t>(places.size(), IOV_MAX));
    return ::preadv2(fd.get(), places.data(), count, static_cast<off_t>(offset), flags);
  }

  Result<Fd> reopen(FdView fd, int flags) override {
    const std::string path = format("/proc/self/fd/{}", fd.get());
    const int number = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags);
    if (number < 0) return fail_errno("open \"{}\"", path);
    return Fd(number);
  }

  int control(FdView fd, int command, long argument) override {
    return ::fcntl(fd.get(), command, argument);
  }
};

}  // namespace

FileCalls& system_file_calls() {
  static SystemFileCalls calls;
  return calls;
}

}  // namespace wc::load
