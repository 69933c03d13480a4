// Bytes that can be told apart: by place, and by seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace wc::contract {

[[nodiscard]] inline std::vector<std::byte> pattern(std::uint64_t bytes, std::uint64_t seed) {
  std::vector<std::byte> out(bytes);
  std::uint64_t state = seed * 0x9E3779B97F4A7C15U + 1;
  for (auto& byte : out) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    byte = static_cast<std::byte>(state >> 56);
  }
  return out;
}

}  // namespace wc::contract
