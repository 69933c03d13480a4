#include "doctor/memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include <sys/statvfs.h>

#include "base/units.hpp"
#include "memory/host/reserve.hpp"

namespace wc::doctor {
namespace {

std::uint64_t available_memory(const std::string& meminfo) {
  std::ifstream file(meminfo);
  std::string key;
  std::uint64_t kib = 0;
  for (std::string unit; file >> key >> kib; std::getline(file, unit)) {
    if (key == "MemAvailable:") return kib * 1024;
  }
  return 0;
}

std::optional<std::uint64_t> size_of_filesystem(const std::string& path) {
  struct statvfs info = {};
  if (::statvfs(path.c_str(), &info) != 0) return std::nullopt;
  return std::uint64_t{info.f_blocks} * info.f_frsize;
}

void judge_headroom(const MemoryFacts& facts, Diagnosis& diagnosis) {
  Finding finding{.area = "memory", .check = "headroom"};
  if (!facts.headroom) {
    finding.severity = Severity::problem;
    finding.text =
        format("how much host memory is free can't be read: {}", facts.headroom.error().message);
    finding.advice = "mount /proc and /sys/fs/cgroup where this process can read them";
    diagnosis.findings.push_back(std::move(finding));
    return;
  }
  const auto& room = *facts.headroom;
  finding.text =
      format("{} of host memory could be had ({})", format_bytes(room.bytes), room.limit);
  if (facts.available_bytes > 0 && room.limit != "MemAvailable") {
    finding.severity = Severity::warning;
    finding.text += format("; the machine has {} available", format_bytes(facts.available_bytes));
    finding.advice =
        "raise the limit of the control group that the daemon runs in, or run the daemon outside "
        "of "
        "it: host segments are charged to the daemon's group (a GPU's memory to none)";
  }
  diagnosis.findings.push_back(std::move(finding));
}

void judge_overcommit(const MemoryFacts& facts, Diagnosis& diagnosis) {
  constexpr int kNever = 2;
  if (facts.overcommit != kNever) return;
  diagnosis.findings.push_back(
      {.area = "memory",
       .check = "overcommit",
       .severity = Severity::warning,
       .text = "vm.overcommit_memory is 2: private (copy-on-write) mappings of large entries are "
               "refused, since the kernel counts them whole",
       .advice = "attach with access \"shared\", or sysctl vm.overcommit_memory=0"});
}

void judge_huge_pages(const MemoryFacts& facts, Diagnosis& diagnosis) {
  Finding staging{.area = "memory", .check = "transparent_huge_pages"};
  staging.text = facts.huge_pages.empty() ? "this kernel has no transparent huge pages"
                                          : format("transparent huge pages: {}", facts.huge_pages);
  if (facts.huge_pages.empty() || facts.huge_pages.find("[never]") != std::string::npos) {
    staging.severity = Severity::warning;
    staging.text += "; pinning memory for a GPU takes longer";
    staging.advice = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled";
  }
  diagnosis.findings.push_back(std::move(staging));

  Finding segments{.area = "memory", .check = "segment_huge_pages"};
  segments.text = "segments of host memory get huge pages";
  if (!facts.segments_huge) {
    segments.severity = Severity::warning;
    segments.text =
        format("segments of host memory get small pages: {}", facts.segments_huge.error().message);
    segments.advice =
        "Linux 6.1 or later, and /sys/kernel/mm/transparent_hugepage/shmem_enabled other than "
        "\"deny\"; without, attaching works, and first touches cost a hundred times as much";
  }
  diagnosis.findings.push_back(std::move(segments));
}

void judge_shm(const MemoryFacts& facts, Diagnosis& diagnosis) {
  constexpr std::uint64_t kContainersDefault = std::uint64_t{64} << 20;
  if (!facts.shm_bytes) return;
  Finding finding{.area = "memory", .check = "dev_shm"};
  finding.text = format("/dev/shm has {}; what the daemon keeps does not lie there",
                        format_bytes(*facts.shm_bytes));
  if (*facts.shm_bytes <= kContainersDefault) {
    finding.severity = Severity::warning;
    finding.text += ", but frameworks' worker processes and staged checkpoints do";
    finding.advice = "start the container with --shm-size or --ipc=host";
  }
  diagnosis.findings.push_back(std::move(finding));
}

}  // namespace

MemoryFacts gather_memory(const Machine& machine) {
  MemoryFacts facts;
  facts.headroom = memory::memory_headroom({.root = machine.root});
  facts.available_bytes = available_memory(machine.root + "/proc/meminfo");
  facts.overcommit = std::atoi(line_of(machine.root + "/proc/sys/vm/overcommit_memory").c_str());
  facts.huge_pages = line_of(machine.root + "/sys/kernel/mm/transparent_hugepage/enabled");
  facts.segments_huge = memory::try_huge_pages();
  facts.shm_bytes = size_of_filesystem(machine.root + "/dev/shm");
  return facts;
}

void judge_memory(const MemoryFacts& facts, Diagnosis& diagnosis) {
  judge_headroom(facts, diagnosis);
  judge_overcommit(facts, diagnosis);
  judge_huge_pages(facts, diagnosis);
  judge_shm(facts, diagnosis);
}

}  // namespace wc::doctor
