// The levers that a test finds in the simulated driver by dlsym, beside the driver's own functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "memory/cuda/api.hpp"

#define WCSIM_EXPORT __attribute__((visibility("default")))

extern "C" {
WCSIM_EXPORT wc::memory::cuda::CuResult cuGetProcAddress(const char* symbol, void** function,
                                                         int version, std::uint64_t flags);
WCSIM_EXPORT wc::memory::cuda::CuResult cuGetProcAddress_v2(const char* symbol, void** function,
                                                            int version, std::uint64_t flags,
                                                            int* status);
/// From now on the n-th call of any function answers `result`; 0: none does. Counts start anew.
WCSIM_EXPORT void wcsim_fail_nth(std::uint64_t nth, int result);
/// How many calls failed because a plan said so, and how many were made.
WCSIM_EXPORT std::uint64_t wcsim_failed();
WCSIM_EXPORT std::uint64_t wcsim_calls();
/// What this process made and did not give back, in words; its length, 0 where nothing is leaked.
WCSIM_EXPORT std::size_t wcsim_leaks(char* text, std::size_t size);
/// Bytes of a GPU that some process holds.
WCSIM_EXPORT std::uint64_t wcsim_used(int gpu);
}
