#include "cli/serve.hpp"

#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/units.hpp"
#include "daemon/server.hpp"

namespace wc::cli {
namespace {

namespace fs = std::filesystem;

std::string_view environment(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr ? value : "";
}

Result<daemon::DeviceBudget> budget_of(const std::string& text) {
  const auto at = text.find('=');
  if (at == 0 || at == std::string::npos) {
    return fail(Code::invalid_argument, "\"{}\" is no budget; write DEVICE=SIZE, like cpu=64GiB",
                text);
  }
  if (text.starts_with("cuda:")) {
    return fail(Code::invalid_argument,
                "\"{}\": a budget names a GPU by its UUID, since the daemon numbers none; "
                "nvidia-smi -L lists them",
                text);
  }
  const std::uint64_t bytes = TRY(parse_bytes(std::string_view(text).substr(at + 1)));
  return daemon::DeviceBudget{text.substr(0, at), bytes};
}

std::optional<std::uint32_t> number_in(const std::string& text) {
  std::uint32_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, code] = std::from_chars(text.data(), end, number);
  if (code != std::errc{} || rest != end) return std::nullopt;
  return number;
}

Result<gid_t> gid_named(const std::string& text) {
  if (const auto number = number_in(text)) return *number;
  std::array<char, 65536> buffer{};
  group record{};
  group* found = nullptr;
  ::getgrnam_r(text.c_str(), &record, buffer.data(), buffer.size(), &found);
  if (found == nullptr) return fail(Code::invalid_argument, "there is no group \"{}\"", text);
  return found->gr_gid;
}

Result<uid_t> uid_named(const std::string& text) {
  if (const auto number = number_in(text)) return *number;
  std::array<char, 65536> buffer{};
  passwd record{};
  passwd* found = nullptr;
  ::getpwnam_r(text.c_str(), &record, buffer.data(), buffer.size(), &found);
  if (found == nullptr) return fail(Code::invalid_argument, "there is no user \"{}\"", text);
  return found->pw_uid;
}

Result<std::optional<gid_t>> group_of(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const gid_t number = TRY(gid_named(text));
  return number;
}

// "USER" or "@GROUP".
Result<daemon::AccessList> access_list_of(const std::vector<std::string>& texts) {
  daemon::AccessList list;
  if (texts.size() > daemon::kMaxListed) {
    return fail(Code::invalid_argument, "{} users and groups are listed; {} at most: use a group",
                texts.size(), daemon::kMaxListed);
  }
  for (const std::string& text : texts) {
    if (text.starts_with('@')) {
      const gid_t group = TRY(gid_named(text.substr(1)));
      list.groups.push_back(group);
    } else {
      const uid_t user = TRY(uid_named(text));
      list.users.push_back(user);
    }
  }
  return list;
}

Level level_named(std::string_view name) {
  if (name == "debug") return Level::debug;
  if (name == "warning") return Level::warning;
  return name == "error" ? Level::error : Level::info;
}

Result<daemon::ServeOptions> options_of(const ServeRequest& request) {
  daemon::ServeOptions options;
  options.socket = TRY(serving_socket(request.socket));
  options.group = TRY(group_of(request.group));
  options.access.read = TRY(access_list_of(request.allow_read));
  options.access.publish = TRY(access_list_of(request.allow_publish));
  for (const auto& text : request.budgets) {
    auto budget = TRY(budget_of(text));
    options.budgets.push_back(std::move(budget));
  }
  options.keep_after_death = request.keep_after_death;
  options.log_level = level_named(request.log_level);
  return options;
}

}  // namespace

Result<std::string> serving_socket(const std::string& asked) {
  fs::path path = asked;
  if (path.empty()) path = environment("WEIGHTCACHE_SOCKET");
  if (path.empty() && ::geteuid() == 0) path = "/run/weightcache/socket";
  const std::string_view runtime = environment("XDG_RUNTIME_DIR");
  if (path.empty() && !runtime.empty()) path = fs::path(runtime) / "weightcache/socket";
  if (path.empty()) path = format("/tmp/weightcache-{}/socket", ::geteuid());
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  if (error) return fail_os(Code::io, error.value(), "current directory");
  return absolute.lexically_normal().string();
}

std::string log_path(const std::string& socket) {
  return (fs::path(socket).parent_path() / "log").string();
}

Result<Fd> open_log(const std::string& socket) {
  const std::string directory = fs::path(socket).parent_path();
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return fail_errno("mkdir \"{}\"", directory);
  }
  const Fd opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info{};
  const bool known = opened && ::fstat(opened.get(), &info) == 0;
  // What others can prepare is left alone; why such a directory won't do is the daemon's to say.
  if (!known || info.st_uid != ::geteuid() || (info.st_mode & 0022) != 0) {
    Fd nothing(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    if (!nothing) return fail_errno("open \"/dev/null\"");
    return nothing;
  }
  Fd log(
      ::openat(opened.get(), "log", O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!log) return fail_errno("open \"{}\"", log_path(socket));
  return log;
}

Result<> check_request(const ServeRequest& request) {
  TRY(options_of(request));
  return {};
}

Result<> serve_until_stopped(const ServeRequest& request,
                             const std::function<void(const Service&)>& ready) {
  auto options = TRY(options_of(request));
  options.ready = [&ready](const daemon::Ready& now) {
    ready({.socket = now.socket, .epoch = now.epoch, .pid = now.pid});
  };
  return daemon::serve(options);
}

}  // namespace wc::cli
