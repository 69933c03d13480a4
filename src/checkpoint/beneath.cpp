#include "checkpoint/beneath.hpp"

#include <array>
#include <cerrno>
#include <string_view>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/units.hpp"
#include "checkpoint/text.hpp"

namespace wc::checkpoint {
namespace {

// openat2 gives up with EAGAIN when something is renamed while it resolves beneath.
constexpr int kTries = 32;

std::string_view kind_of_file(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR:
      return "a directory";
    case S_IFIFO:
      return "a FIFO";
    case S_IFSOCK:
      return "a socket";
    case S_IFCHR:
    case S_IFBLK:
      return "a device";
    default:
      return "something else";
  }
}

Result<Receipt> regular_receipt(FdView fd, const std::string& name) {
  struct stat status = {};
  if (::fstat(fd.get(), &status) != 0) return fail_errno("{}: fstat", in_quotes(name));
  if (!S_ISREG(status.st_mode)) {
    return fail(Code::corrupt, "{}: it is {}, not a regular file", in_quotes(name),
                kind_of_file(status.st_mode));
  }
  return receipt_of(status);
}

}  // namespace

Result<Beneath> Beneath::open(Place place) {
  Fd root(::open(place.root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root) {
    const int number = errno;
    const Code code = number == ENOENT || number == ENOTDIR ? Code::not_found
                      : number == EACCES                    ? Code::denied
                                                            : Code::io;
    return fail_os(code, number, "open {}", in_quotes(place.root));
  }
  return Beneath(std::move(place), std::move(root));
}

std::string Beneath::folder() const {
  return place_.inside.empty() ? place_.root : place_.root + "/" + place_.inside;
}

std::string Beneath::path_of(const std::string& name) const {
  return place_.inside.empty() ? name : place_.inside + "/" + name;
}

Result<Fd> Beneath::open_with(const std::string& name, int flags) const {
  open_how how = {};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_NO_MAGICLINKS;
  if (!place_.follow_symlinks) how.resolve |= RESOLVE_BENEATH;
  const std::string path = path_of(name);
  for (int left = kTries; left > 0; --left) {
    const long fd = ::syscall(SYS_openat2, root_.get(), path.c_str(), &how, sizeof how);
    if (fd >= 0) return Fd(static_cast<int>(fd));
    if (errno != EAGAIN && errno != EINTR) break;
  }
  return why_not(name, errno);
}

Failure Beneath::why_not(const std::string& name, int number) const {
  const std::string target = link_target(name);
  const bool is_link = !target.empty();
  switch (number) {
    case ENOENT:
    case ENOTDIR:
      if (!is_link) return fail(Code::not_found, "{}: the file is missing", in_quotes(name));
      return fail(Code::not_found,
                  "{}: the link points to {}, which is missing (in a hub cache: the blob was not "
                  "fetched, or not to its end; fetch it again)",
                  in_quotes(name), in_quotes(target));
    case EXDEV:
      return fail(Code::denied, "{}: the link to {} leaves {} (follow_symlinks allows it)",
                  in_quotes(name), in_quotes(target), in_quotes(place_.root));
    case ELOOP:
      return fail(Code::denied, "{}: the link to {} leads in a circle, or through /proc",
                  in_quotes(name), in_quotes(target));
    case EACCES:
      return fail_os(Code::denied, number, "{}: open", in_quotes(name));
    case EMFILE:
    case ENFILE:
      return fail_os(Code::exhausted, number,
                     "{}: open (each shard takes one descriptor: raise "
                     "RLIMIT_NOFILE)",
                     in_quotes(name));
    case ENOSYS:
    case EPERM:
      return fail_os(Code::unsupported, number,
                     "{}: openat2 (it needs Linux 5.6, and a container "
                     "that allows it)",
                     in_quotes(name));
    default:
      return fail_os(Code::io, number, "{}: openat2", in_quotes(name));
  }
}

Result<OpenedFile> Beneath::open_file(const std::string& name) const {
  const std::string target = link_target(name);
  if (target.ends_with(".incomplete")) {
    return fail(Code::not_found, "{}: the link points to {}, which was not fetched to its end",
                in_quotes(name), in_quotes(target));
  }
  const Fd looked_at = TRY(open_with(name, O_PATH));
  (void)TRY(regular_receipt(looked_at, name));
  // Should it be exchanged for a FIFO just now, O_NONBLOCK still keeps this from waiting.
  Fd fd = TRY(open_with(name, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  const Receipt receipt = TRY(regular_receipt(fd, name));
  // io_uring answers EAGAIN instead of waiting for a disk where the flag stays.
  if (::fcntl(fd.get(), F_SETFL, 0) != 0) return fail_errno("{}: fcntl(F_SETFL)", in_quotes(name));
  return OpenedFile{std::move(fd), receipt};
}

Result<Receipt> Beneath::receipt_of_file(const std::string& name) const {
  const Fd fd = TRY(open_with(name, O_PATH));
  return regular_receipt(fd, name);
}

std::optional<struct stat> Beneath::status_of_entry(const std::string& name) const {
  struct stat status = {};
  const std::string path = path_of(name);
  if (::fstatat(root_.get(), path.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  return status;
}

std::string Beneath::link_target(const std::string& name) const {
  const std::string path = path_of(name);
  std::array<char, 4096> target = {};
  const ssize_t bytes = ::readlinkat(root_.get(), path.c_str(), target.data(), target.size());
  return bytes < 0 ? std::string() : std::string(target.data(), static_cast<std::size_t>(bytes));
}

Result<std::string> Beneath::read_small(const std::string& name, std::size_t most_bytes) const {
  const OpenedFile file = TRY(open_file(name));
  if (file.receipt.size_bytes > most_bytes) {
    return fail(Code::corrupt, "{}: it is {} bytes long ({} at most)", in_quotes(name),
                format_count(file.receipt.size_bytes), format_count(most_bytes));
  }
  std::string content(file.receipt.size_bytes, '\0');
  TRY(read_at(file.fd, content, 0));
  return content;
}

Result<> read_at(FdView fd, std::span<char> room, std::uint64_t offset) {
  while (!room.empty()) {
    const ssize_t bytes = ::pread(fd.get(), room.data(), room.size(), static_cast<off_t>(offset));
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return fail_errno("pread of {} bytes at {}", room.size(), offset);
    if (bytes == 0) {
      return fail(Code::corrupt, "it ends at byte {}, though {} more were there when it was opened",
                  format_count(offset), format_count(room.size()));
    }
    room = room.subspan(static_cast<std::size_t>(bytes));
    offset += static_cast<std::uint64_t>(bytes);
  }
  return {};
}

}  // namespace wc::checkpoint
