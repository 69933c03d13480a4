// What the process may have: descriptors, locked memory, size of files, address space.
#pragma once

#include <cstdint>

#include "doctor/machine.hpp"

namespace wc::doctor {

inline constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};

struct LimitFacts {
  std::uint64_t open_files = 0;  // the hard limit: daemon and library raise the soft one
  std::uint64_t locked_bytes = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t address_bytes = 0;
  bool may_lock = false;           // CAP_IPC_LOCK: locked_bytes does not count
  std::uint64_t memory_bytes = 0;  // of the machine; 0: unknown
};

[[nodiscard]] LimitFacts gather_limits(const Machine& machine);
void judge_limits(const LimitFacts& facts, Diagnosis& diagnosis);

}  // namespace wc::doctor
