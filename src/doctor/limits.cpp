#include "doctor/limits.hpp"

#include <charconv>
#include <fstream>
#include <string_view>

#include <sys/resource.h>

#include "base/units.hpp"
#include "memory/host/headroom.hpp"

namespace wc::doctor {
namespace {

// A descriptor for each connection and for each segment: what a busy machine needs, with room.
constexpr std::uint64_t kComfortableFiles = 4096;
// The staging rings of a load by fifteen threads: two blocks of 4 MiB each, and some.
constexpr std::uint64_t kComfortableLocked = std::uint64_t{256} << 20;

std::uint64_t limit_of(__rlimit_resource which, bool hard) {
  struct rlimit limit = {};
  if (::getrlimit(which, &limit) != 0) return kUnlimited;
  const rlim_t value = hard ? limit.rlim_max : limit.rlim_cur;
  return value == RLIM_INFINITY ? kUnlimited : value;
}

bool has_ipc_lock(const std::string& status_path) {
  constexpr unsigned kCapIpcLock = 14;  // linux/capability.h
  constexpr std::string_view kKey = "CapEff:\t";
  std::ifstream status(status_path);
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(kKey)) continue;
    std::uint64_t mask = 0;
    std::from_chars(line.data() + kKey.size(), line.data() + line.size(), mask, 16);
    return (mask >> kCapIpcLock & 1U) != 0;
  }
  return false;
}

std::string amount(std::uint64_t bytes) {
  return bytes == kUnlimited ? "unlimited" : format_bytes(bytes);
}

void judge_files(const LimitFacts& facts, Diagnosis& diagnosis) {
  Finding finding{.area = "limits", .check = "open_files"};
  finding.text =
      format("{} descriptors may be open",
             facts.open_files == kUnlimited ? "unlimited" : format_count(facts.open_files));
  if (facts.open_files < kComfortableFiles) {
    finding.severity = Severity::warning;
    finding.text += "; the daemon needs one for each reader and each segment";
    finding.advice = format(
        "raise the hard limit to {} or more: ulimit -Hn, LimitNOFILE=, "
        "--ulimit nofile= of a container",
        format_count(kComfortableFiles));
  }
  diagnosis.findings.push_back(std::move(finding));
}

void judge_locked(const LimitFacts& facts, Diagnosis& diagnosis) {
  Finding finding{.area = "limits", .check = "locked_memory"};
  finding.text = facts.may_lock ? "memory may be locked without limit (CAP_IPC_LOCK)"
                                : format("{} of memory may be locked", amount(facts.locked_bytes));
  if (!facts.may_lock && facts.locked_bytes < kComfortableLocked) {
    finding.severity = Severity::warning;
    finding.text += "; registered buffers and mlock of attached weights may be refused";
    finding.advice =
        "raise it: ulimit -l unlimited, LimitMEMLOCK=infinity, --ulimit memlock=-1 of "
        "a container";
  }
  diagnosis.findings.push_back(std::move(finding));
}

void judge_file_size(const LimitFacts& facts, Diagnosis& diagnosis) {
  Finding finding{.area = "limits", .check = "file_size"};
  finding.text = format("a file may have {}", amount(facts.file_bytes));
  if (facts.file_bytes != kUnlimited) {
    const bool small = facts.memory_bytes != 0 && facts.file_bytes < facts.memory_bytes;
    finding.severity = small ? Severity::problem : Severity::warning;
    finding.text += "; a segment of host memory is one file";
    finding.advice = "lift it for the daemon: ulimit -f unlimited, LimitFSIZE=infinity";
  }
  diagnosis.findings.push_back(std::move(finding));
}

void judge_address_space(const LimitFacts& facts, Diagnosis& diagnosis) {
  if (facts.address_bytes == kUnlimited) return;
  Finding finding{.area = "limits", .check = "address_space", .severity = Severity::warning};
  finding.text = format("the process may map {} only; each attached entry is mapped whole",
                        amount(facts.address_bytes));
  finding.advice = "lift it for daemon and engines: ulimit -v unlimited, LimitAS=infinity";
  diagnosis.findings.push_back(std::move(finding));
}

}  // namespace

LimitFacts gather_limits(const Machine& machine) {
  LimitFacts facts;
  facts.open_files = limit_of(RLIMIT_NOFILE, true);
  facts.locked_bytes = limit_of(RLIMIT_MEMLOCK, false);
  facts.file_bytes = limit_of(RLIMIT_FSIZE, false);
  facts.address_bytes = limit_of(RLIMIT_AS, false);
  facts.may_lock = has_ipc_lock(machine.root + "/proc/self/status");
  const auto total = memory::total_memory({.root = machine.root});
  if (total) facts.memory_bytes = *total;
  return facts;
}

void judge_limits(const LimitFacts& facts, Diagnosis& diagnosis) {
  judge_files(facts, diagnosis);
  judge_locked(facts, diagnosis);
  judge_file_size(facts, diagnosis);
  judge_address_space(facts, diagnosis);
}

}  // namespace wc::doctor
