// What the kernel lets this process do: its release, memfds, io_uring, seccomp.
#pragma once

#include <optional>

#include "doctor/machine.hpp"

namespace wc::doctor {

struct KernelFacts {
  std::string release = {};              // "6.18.44"
  Result<> memfd = {};                   // a trial: made, written, sealed, reopened
  std::optional<int> memfd_noexec = {};  // vm.memfd_noexec; empty: the kernel has no such setting
  Result<> io_uring = {};                // a trial
  std::optional<int> io_uring_disabled = {};
  bool seccomp = false;  // a filter is on
};

[[nodiscard]] KernelFacts gather_kernel(const Machine& machine);
void judge_kernel(const KernelFacts& facts, Diagnosis& diagnosis);

}  // namespace wc::doctor
