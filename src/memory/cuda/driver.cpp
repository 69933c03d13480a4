#include "memory/cuda/driver.hpp"

#include <cstdlib>

#include <dlfcn.h>

namespace wc::memory::cuda {
namespace {

// cuGetProcAddress as of 12.0, and as of 11.3 (which has no last argument).
using GetProcAddressV2 = CuResult (*)(const char*, void**, int, std::uint64_t, int*);
using GetProcAddressV1 = CuResult (*)(const char*, void**, int, std::uint64_t);

// With the name of what the lookup of a function answers, so that who reads the error can tell an
// old driver from an absent one.
Failure too_old(const std::string& what) {
  return Failure(Error{Code::unsupported,
                       format("{}: a driver of CUDA 11.4 or later is needed", what),
                       "CUDA_ERROR_NOT_FOUND"});
}

class Lookup {
 public:
  static Result<Lookup> in(void* library, const std::string& path) {
    Lookup lookup;
    lookup.v2_ = reinterpret_cast<GetProcAddressV2>(::dlsym(library, "cuGetProcAddress_v2"));
    lookup.v1_ = reinterpret_cast<GetProcAddressV1>(::dlsym(library, "cuGetProcAddress"));
    if (lookup.v1_ == nullptr && lookup.v2_ == nullptr) {
      return too_old(format("\"{}\" has no cuGetProcAddress", path));
    }
    return lookup;
  }

  [[nodiscard]] void* find(const char* name, int version) const {
    void* function = nullptr;
    int status = 0;
    const CuResult result = v2_ != nullptr ? v2_(name, &function, version, 0, &status)
                                           : v1_(name, &function, version, 0);
    return result == CuResult::success ? function : nullptr;
  }

 private:
  GetProcAddressV2 v2_ = nullptr;
  GetProcAddressV1 v1_ = nullptr;
};

enum class Kind : std::uint8_t { required, optional };

template <typename Function>
Result<> fill(const Lookup& lookup, const char* name, int version, Kind kind, Function*& slot) {
  slot = reinterpret_cast<Function*>(lookup.find(name, version));
  if (slot == nullptr && kind == Kind::required) {
    return too_old(format("the CUDA driver has no {} of version {}", name, version));
  }
  return {};
}

std::string library_path(const std::string& wanted) {
  if (!wanted.empty()) return wanted;
  const char* given = std::getenv("WEIGHTCACHE_LIBCUDA");
  return given != nullptr && *given != '\0' ? given : "libcuda.so.1";
}

}  // namespace

bool Driver::has_vmm() const {
  return cuMemGetAllocationGranularity != nullptr && cuMemCreate != nullptr &&
         cuMemRelease != nullptr && cuMemExportToShareableHandle != nullptr &&
         cuMemImportFromShareableHandle != nullptr && cuMemAddressReserve != nullptr &&
         cuMemAddressFree != nullptr && cuMemMap != nullptr && cuMemUnmap != nullptr &&
         cuMemSetAccess != nullptr;
}

Result<Driver> open_driver(const std::string& path) {
  Driver driver;
  driver.path = library_path(path);
  void* library = ::dlopen(driver.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = ::dlerror();
    return fail(Code::unsupported, "no CUDA driver: {}",
                reason != nullptr ? reason : driver.path.c_str());
  }
  const Lookup lookup = TRY(Lookup::in(library, driver.path));
#define WC_CU(kind, name, version, prototype) \
  TRY(fill(lookup, #name, version, Kind::kind, driver.name));
#include "memory/cuda/functions.inc"
#undef WC_CU
  const CuResult started = driver.cuInit(0);
  if (started != CuResult::success) {
    return std::unexpected(Error{Code::unsupported,
                                 format("the CUDA driver \"{}\" finds no usable GPU: cuInit: {}",
                                        driver.path, name_of(driver, started)),
                                 name_of(driver, started)});
  }
  TRY(WC_CU_CALL(driver, cuDriverGetVersion, &driver.version));
  return driver;
}

std::string name_of(const Driver& driver, CuResult result) {
  const char* text = nullptr;
  if (driver.cuGetErrorName(result, &text) == CuResult::success && text != nullptr) return text;
  return format("CUresult {}", static_cast<int>(result));
}

Result<> check(const Driver& driver, std::string_view call, CuResult result) {
  if (result == CuResult::success) return {};
  Code code = Code::device;
  if (result == CuResult::out_of_memory) code = Code::exhausted;
  if (result == CuResult::not_supported || result == CuResult::not_permitted) {
    code = Code::unsupported;
  }
  const std::string name = name_of(driver, result);
  return std::unexpected(Error{code, format("{}: {}", call, name), name});
}

}  // namespace wc::memory::cuda
