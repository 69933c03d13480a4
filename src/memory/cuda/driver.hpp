// The CUDA driver as one table of function pointers, filled from functions.inc: opened at run time
// (RTLD_NOW | RTLD_LOCAL), never closed, each function asked for (cuGetProcAddress) at the version
// whose prototype stands there. No singleton: passed by reference. Immutable after open, so any
// thread may use it.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "memory/cuda/api.hpp"

namespace wc::memory::cuda {

struct Driver {
#define WC_CU(kind, name, version, prototype) CuResult(*name) prototype = nullptr;
#include "memory/cuda/functions.inc"
#undef WC_CU

  std::string path;  // of the library that was opened
  int version = 0;   // 13000 for CUDA 13.0

  /// Whether memory can be made, exported as a descriptor and mapped.
  [[nodiscard]] bool has_vmm() const;
};

/// Opens the driver's library and initialises it (cuInit: 100 to 250 ms on a real one). `path` is
/// that of a libcuda.so.1; empty: $WEIGHTCACHE_LIBCUDA, else the system's.
/// Errors: unsupported (no library: without origin; too old: CUDA_ERROR_NOT_FOUND; no device, or
/// whatever else cuInit says), device.
[[nodiscard]] Result<Driver> open_driver(const std::string& path = {});

/// "CUDA_ERROR_OUT_OF_MEMORY"; "CUresult 1234" for a number that the driver does not know.
[[nodiscard]] std::string name_of(const Driver& driver, CuResult result);

/// Success, or an Error `call: NAME` whose origin is the result's name. CUDA_ERROR_OUT_OF_MEMORY is
/// `exhausted`, CUDA_ERROR_NOT_SUPPORTED and NOT_PERMITTED `unsupported`, all else `device`.
[[nodiscard]] Result<> check(const Driver& driver, std::string_view call, CuResult result);

}  // namespace wc::memory::cuda

/// check() of a call by its name: WC_CU_CALL(driver, cuMemRelease, handle).
// NOLINTNEXTLINE(cppcoreguidelines-macro-usage): the name of the call is part of the message.
#define WC_CU_CALL(driver, name, ...) \
  ::wc::memory::cuda::check((driver), #name, (driver).name(__VA_ARGS__))
