// Host memory: what could be had, who limits it, huge pages, /dev/shm.
#pragma once

#include <cstdint>
#include <optional>

#include "doctor/machine.hpp"
#include "memory/host/headroom.hpp"

namespace wc::doctor {

struct MemoryFacts {
  Result<memory::Headroom> headroom = memory::Headroom{};
  std::uint64_t available_bytes = 0;            // of the machine, whatever groups allow; 0: unknown
  int overcommit = 0;                           // vm.overcommit_memory
  std::string huge_pages = {};                  // of ordinary memory: "always [madvise] never"
  Result<> segments_huge = {};                  // a trial on one
  std::optional<std::uint64_t> shm_bytes = {};  // size of /dev/shm
};

[[nodiscard]] MemoryFacts gather_memory(const Machine& machine);
void judge_memory(const MemoryFacts& facts, Diagnosis& diagnosis);

}  // namespace wc::doctor
