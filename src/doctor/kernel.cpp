#include "doctor/kernel.hpp"

#include <array>
#include <charconv>
#include <fstream>
#include <string_view>

#include <sys/utsname.h>

#include "load/uring_reader.hpp"
#include "memory/host/seal.hpp"

namespace wc::doctor {
namespace {

struct Release {
  int major = 0;
  int minor = 0;
  auto operator<=>(const Release&) const = default;
};

constexpr Release kOldest{5, 14};      // MADV_POPULATE_WRITE
constexpr Release kComfortable{6, 1};  // MADV_COLLAPSE

Release parse_release(std::string_view text) {
  Release release;
  const char* const end = text.data() + text.size();
  const auto [dot, code] = std::from_chars(text.data(), end, release.major);
  if (code == std::errc{} && dot != end && *dot == '.') {
    std::from_chars(dot + 1, end, release.minor);
  }
  return release;
}

std::optional<int> setting(const std::string& path) {
  const std::string line = line_of(path);
  int value = 0;
  const auto [end, code] = std::from_chars(line.data(), line.data() + line.size(), value);
  if (code != std::errc{}) return std::nullopt;
  return value;
}

bool has_seccomp_filter(const std::string& status_path) {
  std::ifstream status(status_path);
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Seccomp:\t")) return line.ends_with("2");
  }
  return false;
}

Result<> try_memfd() {
  constexpr std::array<std::byte, 16> kBytes{};
  TRY(memory::sealed_copy("weightcache-doctor", kBytes));
  return {};
}

void judge_release(const KernelFacts& facts, Diagnosis& diagnosis) {
  const Release release = parse_release(facts.release);
  Finding finding{.area = "kernel", .check = "release"};
  finding.text = format("Linux {}", facts.release);
  if (release < kComfortable) {
    finding.severity = Severity::warning;
    finding.text += release < kOldest
                        ? "; everything works, with small pages and slower start-up of loads"
                        : "; everything works, with small pages for host segments";
    finding.advice = "Linux 6.1 or later";
  }
  diagnosis.findings.push_back(std::move(finding));
}

void judge_memfd(const KernelFacts& facts, Diagnosis& diagnosis) {
  Finding finding{.area = "transport", .check = "host_fd"};
  const std::string noexec =
      facts.memfd_noexec ? format(" (vm.memfd_noexec is {})", *facts.memfd_noexec) : std::string();
  if (facts.memfd) {
    finding.text = "host_fd, on device cpu: sealed memfds work" + noexec;
  } else {
    finding.severity = Severity::problem;
    finding.text =
        format("host_fd, on device cpu, can't serve: {}{}", facts.memfd.error().message, noexec);
    finding.advice =
        "allow memfd_create and fcntl(F_ADD_SEALS) in the seccomp profile, and mount "
        "/proc";
  }
  diagnosis.findings.push_back(std::move(finding));
}

void judge_io_uring(const KernelFacts& facts, Diagnosis& diagnosis) {
  Finding finding{.area = "kernel", .check = "io_uring", .text = "io_uring may be used"};
  if (!facts.io_uring) {
    finding.severity = Severity::warning;
    finding.text = format("io_uring is refused ({}): cold files are read by threads instead",
                          facts.io_uring.error().message);
    const int disabled = facts.io_uring_disabled.value_or(0);
    if (disabled > 0) {
      finding.text += format("; kernel.io_uring_disabled is {}", disabled);
      finding.advice = disabled == 1 ? "sysctl kernel.io_uring_disabled=0, or join the group of "
                                       "kernel.io_uring_group"
                                     : "sysctl kernel.io_uring_disabled=0";
    } else if (facts.io_uring.error().origin == "ENOSYS") {
      finding.advice = "a kernel with CONFIG_IO_URING, or a seccomp profile that does not hide it";
    } else if (facts.seccomp) {
      finding.advice =
          "a seccomp profile that allows io_uring_setup and io_uring_enter (Docker's "
          "default refuses them)";
    } else {
      finding.advice = "ask the system's administrator which policy refuses io_uring_setup";
    }
  }
  diagnosis.findings.push_back(std::move(finding));
}

}  // namespace

KernelFacts gather_kernel(const Machine& machine) {
  KernelFacts facts;
  struct utsname name = {};
  if (::uname(&name) == 0) facts.release = static_cast<const char*>(name.release);
  facts.memfd = try_memfd();
  facts.memfd_noexec = setting(machine.root + "/proc/sys/vm/memfd_noexec");
  const auto ring = load::UringReader::create();
  if (!ring) facts.io_uring = Failure(ring.error());
  facts.io_uring_disabled = setting(machine.root + "/proc/sys/kernel/io_uring_disabled");
  facts.seccomp = has_seccomp_filter(machine.root + "/proc/self/status");
  return facts;
}

void judge_kernel(const KernelFacts& facts, Diagnosis& diagnosis) {
  judge_release(facts, diagnosis);
  judge_memfd(facts, diagnosis);
  judge_io_uring(facts, diagnosis);
}

}  // namespace wc::doctor
