#include "client/address.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace wc::client {
namespace {

constexpr std::size_t kMaxNameBytes = 80;  // of the socket's file; the rest is "/proc/self/fd/N/"

std::string text_of(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? std::string() : std::string(value);
}

std::string users_socket(const Environment& environment) {
  if (!environment.runtime_dir.empty()) return environment.runtime_dir + "/weightcache/socket";
  return format("/tmp/weightcache-{}/socket", environment.uid);
}

struct SplitPath {
  std::string directory;
  std::string name;
};

SplitPath split(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

Result<Fd> open_directory(const std::string& path) {
  const int number = ::open(path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (number >= 0) return Fd(number);
  struct stat status = {};
  const int reason = errno;
  if (reason == ENOTDIR && ::lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode))
    return fail(Code::denied, "\"{}\" is a symbolic link, not a directory", path);
  if (reason == ENOTDIR) return fail_os(Code::denied, reason, "open \"{}\"", path);
  return fail_os(Code::disconnected, reason, "open \"{}\"", path);
}

}  // namespace

Environment process_environment() {
  Environment environment;
  environment.socket = text_of("WEIGHTCACHE_SOCKET");
  environment.runtime_dir = text_of("XDG_RUNTIME_DIR");
  environment.trust = text_of("WEIGHTCACHE_TRUST");
  environment.uid = ::geteuid();
  return environment;
}

Result<std::vector<std::uint32_t>> uids_in(const std::string& text) {
  std::vector<std::uint32_t> uids;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const char* const end = text.data() + comma;
    std::uint32_t uid = 0;
    const auto [rest, code] = std::from_chars(text.data() + at, end, uid);
    if (code != std::errc{} || rest != end) {
      return fail(Code::invalid_argument,
                  "WEIGHTCACHE_TRUST: \"{}\" is no user's number; write 1000 or 1000,1001",
                  text.substr(at, comma - at));
    }
    uids.push_back(uid);
    at = comma + 1;
  }
  return uids;
}

std::vector<std::string> sockets_to_try(const std::string& asked, const Environment& environment) {
  if (!asked.empty()) return {asked};
  if (!environment.socket.empty()) return {environment.socket};
  return {users_socket(environment), environment.system_socket};
}

std::string socket_to_listen_on(const std::string& asked, const Environment& environment) {
  if (!asked.empty()) return asked;
  if (!environment.socket.empty()) return environment.socket;
  return environment.uid == 0 ? environment.system_socket : users_socket(environment);
}

bool is_trusted(std::uint32_t uid, std::uint32_t own_uid,
                std::span<const std::uint32_t> trusted_uids) {
  return uid == 0 || uid == own_uid ||
         std::find(trusted_uids.begin(), trusted_uids.end(), uid) != trusted_uids.end();
}

Result<SocketPlace> SocketPlace::open(const std::string& path, std::uint32_t uid,
                                      std::span<const std::uint32_t> trusted_uids) {
  const auto [directory, name] = split(path);
  if (name.empty() || name.size() > kMaxNameBytes || path.find('\0') != std::string::npos) {
    return fail(Code::invalid_argument,
                "\"{}\" names no socket: the file's name has {} bytes (1 to {})", path, name.size(),
                kMaxNameBytes);
  }
  Fd opened = TRY(open_directory(directory));
  struct stat status = {};
  if (::fstat(opened.get(), &status) != 0) return fail_errno("fstat \"{}\"", directory);
  if (!is_trusted(status.st_uid, uid, trusted_uids)) {
    return fail(Code::denied, "\"{}\" belongs to uid {}, neither root nor {} nor trusted",
                directory, status.st_uid, uid);
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return fail(Code::denied, "\"{}\" has mode {:o}: others than its owner can write it", directory,
                status.st_mode & 07777U);
  }
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string short_path = format("/proc/self/fd/{}/{}", opened.get(), name);
  short_path.copy(static_cast<char*>(address.sun_path), sizeof(address.sun_path) - 1);
  return SocketPlace(std::move(opened), address);
}

}  // namespace wc::client
