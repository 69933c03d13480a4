#include "checkpoint/source.hpp"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include <sys/stat.h>

#include "checkpoint/hub.hpp"
#include "checkpoint/names.hpp"
#include "checkpoint/text.hpp"

namespace wc::checkpoint {
namespace {

Failure refused(const std::string& source, int number) {
  const Code code = number == ENOENT || number == ENOTDIR       ? Code::not_found
                    : number == EACCES                          ? Code::denied
                    : number == ENAMETOOLONG || number == ELOOP ? Code::invalid_argument
                                                                : Code::io;
  return fail_os(code, number, "{}", in_quotes(source));
}

Result<std::string> real_path(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                         &std::free);
  if (!real) return refused(path, errno);
  return std::string(real.get());
}

// As the user wrote it, so that a link called "llama" stays "llama"; the real name where the path
// ends in dots.
std::string last_name(const std::string& source, const std::string& real) {
  std::string path = source;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  const std::string name = std::filesystem::path(path).filename().string();
  if (!name.empty() && name != "." && name != "..") return name;
  const std::string other = std::filesystem::path(real).filename().string();
  return other.empty() ? "root" : other;
}

Result<Beneath> open_folder(const std::string& real, const OpenOptions& options) {
  const auto hub = hub_place(real);
  return Beneath::open({.root = hub ? hub->root : real,
                        .inside = hub ? hub->inside : std::string(),
                        .follow_symlinks = options.follow_symlinks});
}

Result<Source> resolve_folder(const std::string& source, const OpenOptions& options) {
  const std::string real = TRY(real_path(source));
  const auto hub = hub_place(real);
  Beneath folder = TRY(open_folder(real, options));
  return Source{std::move(folder), hub ? hub->name : last_name(source, real), {}};
}

Result<Source> resolve_file(const std::string& source, const OpenOptions& options) {
  const std::filesystem::path path(source);
  std::string file = path.filename().string();
  if (!has_shard_suffix(file)) {
    return fail(Code::invalid_argument, "{}: it is neither a folder nor a file that ends in {}",
                in_quotes(source), in_quotes(kShardSuffix));
  }
  const std::string parent = path.has_parent_path() ? path.parent_path().string() : ".";
  const std::string real = TRY(real_path(parent));
  const auto hub = hub_place(real);
  Beneath folder = TRY(open_folder(real, options));
  std::string name = file.substr(0, file.size() - kShardSuffix.size());
  if (name.empty()) name = file;
  return Source{std::move(folder), hub ? hub->name : std::move(name), std::move(file)};
}

}  // namespace

Result<Source> resolve(const std::string& source, const OpenOptions& options) {
  if (source.empty() || source.find('\0') != std::string::npos) {
    return fail(Code::invalid_argument, "{}: no checkpoint has this name", in_quotes(source));
  }
  struct stat status = {};
  if (::stat(source.c_str(), &status) == 0) {
    return S_ISDIR(status.st_mode) ? resolve_folder(source, options)
                                   : resolve_file(source, options);
  }
  const int number = errno;
  // A dangling link is a file whose opening tells what is missing.
  if (::lstat(source.c_str(), &status) == 0 && S_ISLNK(status.st_mode) &&
      has_shard_suffix(source)) {
    return resolve_file(source, options);
  }
  if (number == ENOENT && is_repository_id(source)) {
    const std::string snapshot = TRY(snapshot_of(source));
    auto resolved = resolve_folder(snapshot, options);
    if (resolved) return resolved;
    return Failure(std::move(resolved).error().within(
        format("{}: its snapshot in the hub cache: ", in_quotes(source))));
  }
  return refused(source, number);
}

}  // namespace wc::checkpoint
