#include "memory/host/control_groups.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "memory/host/system_text.hpp"

namespace wc::memory {
namespace {

// The names of one version of the interface.
struct Files {
  std::array<std::string_view, 2> limits;
  std::string_view usage;
  std::string_view inactive_file;  // in memory.stat, descendants included
  std::string_view active_file;
};

// Above memory.high a process is not killed but put to sleep for seconds at a time, so it is a
// limit like the other.
constexpr Files kVersion2 = {
    {"memory.max", "memory.high"}, "memory.current", "inactive_file", "active_file"};
constexpr Files kVersion1 = {{"memory.limit_in_bytes", ""},
                             "memory.usage_in_bytes",
                             "total_inactive_file",
                             "total_active_file"};

// Version 1 writes "no limit" as a number near 2^63.
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 62;

struct Hierarchy {
  std::string mount_point;  // "/sys/fs/cgroup"
  std::string root;         // the group that is mounted there: "/" unless in a container
  const Files* files = nullptr;
};

bool holds(std::string_view list, std::string_view wanted) {
  return std::ranges::count(split(list, ','), wanted) > 0;
}

// mountinfo: "36 35 0:30 ROOT MOUNT_POINT OPTIONS ... - TYPE SOURCE SUPER_OPTIONS".
std::optional<Hierarchy> hierarchy_in(std::string_view line) {
  const auto dash = line.find(" - ");
  if (dash == std::string_view::npos) return std::nullopt;
  const auto left = split(line.substr(0, dash), ' ');
  const auto right = split(line.substr(dash + 3), ' ');
  if (left.size() < 6 || right.size() < 3) return std::nullopt;
  const Files* files = nullptr;
  if (right[0] == "cgroup2") files = &kVersion2;
  if (right[0] == "cgroup" && holds(right[2], "memory")) files = &kVersion1;
  if (files == nullptr) return std::nullopt;
  return Hierarchy{std::string(left[4]), std::string(left[3]), files};
}

// /proc/self/cgroup: "0::/a/b" for version 2, "4:memory:/a/b" for version 1.
std::optional<std::string> own_group(std::string_view cgroups, const Files& files) {
  for (const std::string_view line : split(cgroups, '\n')) {
    const auto first = line.find(':');
    if (first == std::string_view::npos) continue;
    const auto second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const auto controllers = line.substr(first + 1, second - first - 1);
    const bool ours = &files == &kVersion2 ? line.starts_with("0::") : holds(controllers, "memory");
    if (ours) return std::string(line.substr(second + 1));
  }
  return std::nullopt;
}

// The group as seen below the mount point. In a container without a namespace for groups the mount
// shows a subtree; a group outside of it can't be seen, and its mounted root is the best there is.
std::string below_mount(const std::string& group, const std::string& root) {
  if (group.find("/..") != std::string::npos) return "";
  if (root == "/") return group == "/" ? "" : group;
  if (group == root || !group.starts_with(root + "/")) return "";
  return group.substr(root.size());
}

Result<std::optional<std::uint64_t>> number_of(const std::string& path) {
  auto text = read_text(path);
  if (!text && text.error().code == Code::not_found) return std::nullopt;
  if (!text) return Failure(std::move(text).error());
  if (text->ends_with('\n')) text->pop_back();
  if (*text == "max") return std::nullopt;
  const auto number = number_in(*text);
  if (!number) return fail(Code::io, "\"{}\" says \"{}\", which is no number", path, *text);
  if (*number >= kNoLimit) return std::nullopt;
  return number;
}

// Half of what was read lately is taken for lost: the kernel gives it up last.
std::uint64_t reclaimable(const std::string& stat_path, const Files& files) {
  const auto stat = read_text(stat_path);
  if (!stat) return 0;
  const auto inactive = number_behind(files.inactive_file, *stat).value_or(0);
  const auto active = number_behind(files.active_file, *stat).value_or(0);
  return inactive + active / 2;
}

Result<> add_limits(const std::string& folder, const std::string& group, const Files& files,
                    std::vector<GroupLimit>& limits) {
  for (const std::string_view name : files.limits) {
    if (name.empty()) continue;
    const auto limit = TRY(number_of(format("{}/{}", folder, name)));
    if (!limit) continue;
    const auto used = TRY(number_of(format("{}/{}", folder, files.usage)));
    limits.push_back({.group = group.empty() ? "/" : group,
                      .limit = std::string(name),
                      .limit_bytes = *limit,
                      .used_bytes = used.value_or(0),
                      .reclaimable_bytes = reclaimable(folder + "/memory.stat", files)});
  }
  return {};
}

}  // namespace

Result<std::vector<GroupLimit>> memory_limits(const std::string& root) {
  std::vector<GroupLimit> limits;
  const auto mounts = read_text(root + "/proc/self/mountinfo");
  const auto cgroups = read_text(root + "/proc/self/cgroup");
  if (!mounts || !cgroups) return limits;
  for (const std::string_view line : split(*mounts, '\n')) {
    const auto hierarchy = hierarchy_in(line);
    if (!hierarchy) continue;
    const auto own = own_group(*cgroups, *hierarchy->files);
    if (!own) continue;
    std::string group = below_mount(*own, hierarchy->root);
    while (true) {
      TRY(add_limits(root + hierarchy->mount_point + group, group, *hierarchy->files, limits));
      if (group.empty()) break;
      group.resize(group.rfind('/'));
    }
  }
  return limits;
}

}  // namespace wc::memory
