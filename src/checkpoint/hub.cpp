#include "checkpoint/hub.hpp"

#include <algorithm>
#include <cstdlib>

#include "checkpoint/beneath.hpp"
#include "checkpoint/text.hpp"

namespace wc::checkpoint {
namespace {

constexpr std::string_view kModels = "models--";
constexpr std::size_t kMaxRefBytes = 256;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  std::string text = value != nullptr ? value : "";
  if (text == "~" || text.starts_with("~/")) {
    const char* home = std::getenv("HOME");
    text.replace(0, 1, home != nullptr ? home : "");
  }
  return text;
}

bool is_plain_part(std::string_view part) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  const auto edge = [](char c) { return c == '-' || c == '.'; };
  return !part.empty() && part.size() <= 96 && std::all_of(part.begin(), part.end(), allowed) &&
         !edge(part.front()) && !edge(part.back()) && part.find("--") == std::string_view::npos &&
         part.find("..") == std::string_view::npos;
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && !first_control(name) &&
         name.find('/') == std::string_view::npos;
}

std::string repository_of(std::string_view folder) {
  std::string name(folder.substr(kModels.size()));
  if (const auto at = name.find("--"); at != std::string::npos) name.replace(at, 2, "/");
  return name;
}

}  // namespace

bool is_repository_id(std::string_view source) {
  const auto slash = source.find('/');
  return slash != std::string_view::npos && is_plain_part(source.substr(0, slash)) &&
         is_plain_part(source.substr(slash + 1));
}

std::string hub_cache() {
  if (std::string cache = variable("HF_HUB_CACHE"); !cache.empty()) return cache;
  if (const std::string home = variable("HF_HOME"); !home.empty()) return home + "/hub";
  std::string caches = variable("XDG_CACHE_HOME");
  if (caches.empty()) caches = variable("HOME") + "/.cache";
  return caches + "/huggingface/hub";
}

Result<std::string> snapshot_of(const std::string& repository) {
  const std::string cache = hub_cache();
  std::string folder(kModels);
  folder += repository;
  folder.replace(folder.find('/'), 1, "--");
  const std::string root = cache + "/" + folder;
  auto refs = Beneath::open({.root = root, .inside = "refs", .follow_symlinks = false});
  if (!refs && refs.error().code == Code::not_found) {
    return fail(Code::not_found,
                "{}: there is no such file or folder, nor such a repository in the hub cache {} "
                "(nothing is fetched here; `hf download {}` does)",
                in_quotes(repository), in_quotes(cache), repository);
  }
  if (!refs) return Failure(std::move(refs).error());
  auto main = refs->read_small("main", kMaxRefBytes);
  if (!main) {
    return Failure(std::move(main).error().within(
        format("{}: in the hub cache, {}/refs/", in_quotes(repository), root)));
  }
  while (!main->empty() && is_json_space(main->back())) main->pop_back();
  if (!is_plain_name(*main)) {
    return fail(Code::corrupt, "{}: {}/refs/main holds {}, which names no snapshot",
                in_quotes(repository), root, in_quotes(*main));
  }
  return root + "/snapshots/" + *main;
}

std::optional<HubPlace> hub_place(std::string_view folder) {
  std::size_t end = folder.size();
  while (true) {
    const std::size_t slash = folder.rfind('/', end == 0 ? 0 : end - 1);
    if (slash == std::string_view::npos || end == 0) return std::nullopt;
    const std::string_view part = folder.substr(slash + 1, end - slash - 1);
    const std::string_view below = folder.substr(std::min(end + 1, folder.size()));
    if (part.starts_with(kModels) && below.starts_with("snapshots/")) {
      const std::string_view revision = below.substr(below.find('/') + 1);
      const std::size_t deeper = revision.find('/');
      std::string name = repository_of(part);
      if (deeper != std::string_view::npos) name += revision.substr(deeper);
      return HubPlace{std::string(folder.substr(0, end)), std::string(below), std::move(name)};
    }
    end = slash;
  }
}

}  // namespace wc::checkpoint
