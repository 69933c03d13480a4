#include "load/hash_kernel.hpp"

#include <array>

namespace wc::load {

#if defined(__x86_64__)

std::span<const HashKernel* const> hash_kernels() {
  static constexpr std::array<const HashKernel*, 3> kAll = {&kGenericHash, &kAvx2Hash,
                                                            &kAvx512Hash};
  static const std::size_t count = __builtin_cpu_supports("avx512f") != 0 ? 3
                                   : __builtin_cpu_supports("avx2") != 0  ? 2
                                                                          : 1;
  return std::span(kAll).first(count);
}

#else

std::span<const HashKernel* const> hash_kernels() {
  static constexpr std::array<const HashKernel*, 1> kAll = {&kGenericHash};
  return kAll;
}

#endif

const HashKernel& best_hash_kernel() { return *hash_kernels().back(); }

}  // namespace wc::load
