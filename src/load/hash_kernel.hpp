// The digest's inner loop, compiled once for each instruction set, behind plain function pointers:
// nothing inlined from a file compiled for a newer processor may reach an older one.
#pragma once

#include <cstddef>
#include <span>

namespace wc::load {

inline constexpr std::size_t kHashStateBytes = 640;
inline constexpr std::size_t kHashStateAlignment = 64;

struct HashKernel {
  const char* name;
  void (*reset)(void* state);
  void (*update)(void* state, const void* bytes, std::size_t size);
  void (*finish)(const void* state, void* canonical);
};

/// Those that this processor can run, the fastest last.
[[nodiscard]] std::span<const HashKernel* const> hash_kernels();
[[nodiscard]] const HashKernel& best_hash_kernel();

extern const HashKernel kGenericHash;
#if defined(__x86_64__)
extern const HashKernel kAvx2Hash;
extern const HashKernel kAvx512Hash;
#endif

}  // namespace wc::load
