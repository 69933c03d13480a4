#include "memory/host/headroom.hpp"

#include <algorithm>
#include <string_view>

#include <sys/resource.h>

#include "base/units.hpp"
#include "memory/host/control_groups.hpp"
#include "memory/host/system_text.hpp"

namespace wc::memory {
namespace {

Result<std::uint64_t> meminfo(std::string_view key, const SystemFacts& facts) {
  const std::string path = facts.root + "/proc/meminfo";
  const std::string text = TRY(read_text(path));
  const auto kib = number_behind(key, text);
  if (!kib) return fail(Code::io, "\"{}\" has no {}", path, key);
  return *kib * 1024;
}

std::uint64_t left_by(const GroupLimit& limit) {
  const std::uint64_t held = limit.used_bytes - std::min(limit.used_bytes, limit.reclaimable_bytes);
  return limit.limit_bytes - std::min(limit.limit_bytes, held);
}

}  // namespace

Result<Headroom> memory_headroom(const SystemFacts& facts) {
  const std::uint64_t available = TRY(meminfo("MemAvailable:", facts));
  Headroom least = {.bytes = available, .limit = "MemAvailable"};
  const auto limits = TRY(memory_limits(facts.root));
  for (const GroupLimit& limit : limits) {
    const std::uint64_t left = left_by(limit);
    if (left >= least.bytes) continue;
    least = {.bytes = left,
             .limit = format("{} of control group \"{}\"", limit.limit, limit.group)};
  }
  return least;
}

Result<> check_file_limit(std::uint64_t bytes, const SystemFacts& facts) {
  std::uint64_t limit = RLIM_INFINITY;
  if (facts.file_limit_bytes) {
    limit = *facts.file_limit_bytes;
  } else {
    struct rlimit current = {};
    if (::getrlimit(RLIMIT_FSIZE, &current) != 0) return fail_errno("getrlimit(RLIMIT_FSIZE)");
    limit = current.rlim_cur;
  }
  if (limit == RLIM_INFINITY || bytes <= limit) return {};
  return fail(Code::exhausted,
              "{} of host memory needed in one piece, but files may have {} at most: raise "
              "RLIMIT_FSIZE (ulimit -f, LimitFSIZE=)",
              format_bytes(bytes), format_bytes(limit));
}

Result<std::uint64_t> total_memory(const SystemFacts& facts) { return meminfo("MemTotal:", facts); }

Result<Headroom> allowed_memory(const SystemFacts& facts) {
  const std::uint64_t total = TRY(meminfo("MemTotal:", facts));
  Headroom least = {.bytes = total, .limit = "MemTotal"};
  const auto limits = TRY(memory_limits(facts.root));
  for (const GroupLimit& limit : limits) {
    if (limit.limit_bytes >= least.bytes) continue;
    least = {.bytes = limit.limit_bytes,
             .limit = format("{} of control group \"{}\"", limit.limit, limit.group)};
  }
  return least;
}

}  // namespace wc::memory
