#include "daemon/runtime_dir.hpp"

#include <array>
#include <charconv>
#include <string>

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace wc::daemon {
namespace {

constexpr const char* kLockName = "lock";
constexpr int kLockIntervalMs = 5;
constexpr int kLockAttempts = 400;

mode_t directory_mode(const RuntimeDir::Options& options) {
  if (options.everybody) return 0711;
  return options.group ? 0750 : 0700;
}
mode_t socket_mode(const RuntimeDir::Options& options) {
  if (options.everybody) return 0666;
  return options.group ? 0660 : 0600;
}

Result<Fd> open_directory(const std::string& path, mode_t mode) {
  if (::mkdir(path.c_str(), mode) != 0 && errno != EEXIST) return fail_errno("mkdir \"{}\"", path);
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd >= 0) return Fd(fd);
  const int number = errno;
  struct stat info{};
  if (::lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode)) {
    return fail(Code::denied,
                "\"{}\" is a symbolic link; the daemon's directory must be one itself", path);
  }
  return fail_os(number == EACCES ? Code::denied : Code::io, number, "open \"{}\"", path);
}

// Narrows what is ours; refuses what is not, or what others could have prepared.
Result<> check_directory(FdView directory, const std::string& path,
                         const RuntimeDir::Options& options) {
  struct stat info{};
  if (::fstat(directory.get(), &info) != 0) return fail_errno("fstat of \"{}\"", path);
  if (info.st_uid != ::geteuid()) {
    return fail(Code::denied,
                "\"{}\" belongs to user {}, not to {}; choose a socket in a directory of your own",
                path, info.st_uid, ::geteuid());
  }
  if ((info.st_mode & 0022) != 0) {
    return fail(Code::denied,
                "\"{}\" can be written by others (mode {:04o}); choose a socket in a directory of "
                "its own, like \"{}/weightcache/socket\"",
                path, info.st_mode & 07777, path);
  }
  if (options.group && info.st_gid != *options.group &&
      ::fchown(directory.get(), static_cast<uid_t>(-1), *options.group) != 0) {
    return fail_os(Code::denied, errno, "fchown of \"{}\" to group {}", path, *options.group);
  }
  const mode_t wanted = directory_mode(options);
  if ((info.st_mode & 07777) != wanted && ::fchmod(directory.get(), wanted) != 0) {
    return fail_errno("fchmod of \"{}\"", path);
  }
  return {};
}

// The pid that the holder wrote, for people; 0 where it can't be read.
int holder_of(FdView lock) {
  std::array<char, 16> text{};
  const auto got = ::pread(lock.get(), text.data(), text.size(), 0);
  int pid = 0;
  if (got > 0) std::from_chars(text.data(), text.data() + got, pid);
  return pid;
}

bool write_pid(FdView lock, pid_t pid) {
  const std::string text = format("{}\n", pid);
  return ::ftruncate(lock.get(), 0) == 0 &&
         ::pwrite(lock.get(), text.data(), text.size(), 0) == std::ssize(text);
}

Result<Fd> take_lock(FdView directory, const std::string& path, const std::string& socket) {
  int attempts = kLockAttempts;
  Fd lock(::openat(directory.get(), kLockName, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!lock) return fail_errno("open \"{}/{}\"", path, kLockName);
  struct flock whole{};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  while (::fcntl(lock.get(), F_OFD_SETLK, &whole) != 0) {
    const int number = errno;
    const bool held = number == EAGAIN || number == EACCES;
    // One that ends has removed its socket, and holds the lock until its last process is gone.
    if (held && attempts-- > 0 && ::faccessat(directory.get(), socket.c_str(), F_OK, 0) != 0) {
      ::poll(nullptr, 0, kLockIntervalMs);
      continue;
    }
    if (!held) return fail_os(Code::io, number, "lock \"{}/{}\"", path, kLockName);
    return fail(Code::busy, "a daemon (pid {}) serves \"{}\" already", holder_of(lock), path);
  }
  if (!write_pid(lock, ::getpid())) return fail_errno("write \"{}/{}\"", path, kLockName);
  return lock;
}

// Through the directory's descriptor: the path may be longer than a sockaddr has room for, and
// whatever it names by now, the socket lands in the directory that was checked.
Result<sockaddr_un> address_in(FdView directory, const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = format("/proc/self/fd/{}/{}", directory.get(), name);
  if (path.size() >= sizeof(address.sun_path)) {
    return fail(Code::invalid_argument, "the socket's name \"{}\" is longer than {} bytes", name,
                sizeof(address.sun_path) - 20);
  }
  path.copy(static_cast<char*>(address.sun_path), path.size());
  return address;
}

Result<> remove_stale(FdView directory, const std::filesystem::path& path) {
  const std::string name = path.filename();
  struct stat info{};
  if (::fstatat(directory.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return {};
    return fail_errno("stat \"{}\"", path.native());
  }
  if (!S_ISSOCK(info.st_mode)) {
    return fail(Code::already_exists, "\"{}\" is not a socket; it is left alone", path.native());
  }
  if (::unlinkat(directory.get(), name.c_str(), 0) != 0 && errno != ENOENT) {
    return fail_errno("unlink \"{}\"", path.native());
  }
  return {};
}

}  // namespace

Result<RuntimeDir> RuntimeDir::open(const Options& options) {
  const std::string path = options.socket.parent_path();
  const std::string name = options.socket.filename();
  if (path.empty() || name.empty() || name == "." || name == ".." || name == kLockName) {
    return fail(Code::invalid_argument,
                "\"{}\" can't be the daemon's socket; it needs a directory and a name of its own, "
                "like \"/run/weightcache/socket\"",
                options.socket.native());
  }
  Fd directory = TRY(open_directory(path, directory_mode(options)));
  TRY(check_directory(directory, path, options));
  TRY(address_in(directory, name));
  Fd lock = TRY(take_lock(directory, path, name));
  // systemd-tmpfiles spares a directory of /tmp that somebody holds such a lock on.
  static_cast<void>(::flock(directory.get(), LOCK_SH | LOCK_NB));
  return RuntimeDir(options, std::move(directory), std::move(lock));
}

Result<Fd> RuntimeDir::listen(int backlog) {
  const std::string name = options_.socket.filename();
  TRY(remove_stale(directory_, options_.socket));
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return fail_errno("socket(AF_UNIX, SOCK_SEQPACKET)");
  const sockaddr_un address = TRY(address_in(directory_, name));
  const mode_t before = ::umask(0777 & ~socket_mode(options_));
  const int bound =
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  const int number = errno;
  ::umask(before);
  if (bound != 0) return fail_os(Code::io, number, "bind \"{}\"", options_.socket.native());
  if (options_.group && ::fchownat(directory_.get(), name.c_str(), static_cast<uid_t>(-1),
                                   *options_.group, AT_SYMLINK_NOFOLLOW) != 0) {
    return fail_os(Code::denied, errno, "chown of \"{}\" to group {}", options_.socket.native(),
                   *options_.group);
  }
  if (::listen(socket.get(), backlog) != 0) {
    return fail_errno("listen on \"{}\"", options_.socket.native());
  }
  return socket;
}

void RuntimeDir::tell_pid(pid_t pid) const { static_cast<void>(write_pid(lock_, pid)); }

void RuntimeDir::remove_socket() {
  ::unlinkat(directory_.get(), options_.socket.filename().c_str(), 0);
}

}  // namespace wc::daemon
