// Any bytes as the choices of a scenario: the catalog does what its reference model does, whatever
// is asked of it in whatever order, and in the end nothing is left.
#include <cstddef>
#include <cstdint>

#include "catalog/scenario.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kMaxBytes = 4096;  // each step walks all tables
  const std::uint8_t* const end = data + (size < kMaxBytes ? size : kMaxBytes);
  wc::catalog::Scenario scenario(
      [&](std::uint32_t n) { return data < end ? *data++ % n : std::uint32_t{0}; });
  while (data < end) {
    if (!scenario.step().empty()) __builtin_trap();
  }
  if (!scenario.finish().empty()) __builtin_trap();
  return 0;
}
