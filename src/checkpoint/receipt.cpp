#include "checkpoint/receipt.hpp"

#include <sys/stat.h>

#include "base/units.hpp"

namespace wc::checkpoint {
namespace {

std::int64_t nanoseconds_of(const timespec& time) {
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

Result<Receipt> receipt_of(FdView fd) {
  struct stat status = {};
  if (::fstat(fd.get(), &status) != 0) return fail_errno("fstat");
  return receipt_of(status);
}

Receipt receipt_of(const struct stat& status) {
  return Receipt{.device = status.st_dev,
                 .inode = status.st_ino,
                 .size_bytes = static_cast<std::uint64_t>(status.st_size),
                 .mtime_ns = nanoseconds_of(status.st_mtim),
                 .ctime_ns = nanoseconds_of(status.st_ctim)};
}

std::string difference(const Receipt& before, const Receipt& after) {
  std::string text;
  const auto add = [&text](std::string_view part) {
    if (!text.empty()) text += ", ";
    text += part;
  };
  if (before.device != after.device || before.inode != after.inode) add("another file");
  if (before.size_bytes != after.size_bytes) {
    add(format("size {} -> {}", format_count(before.size_bytes), format_count(after.size_bytes)));
  }
  if (before.mtime_ns != after.mtime_ns) add("mtime changed");
  if (before.ctime_ns != after.ctime_ns) add("ctime changed");
  return text;
}

}  // namespace wc::checkpoint
