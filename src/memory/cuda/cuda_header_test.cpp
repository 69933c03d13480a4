// Our declarations against the toolkit's, where there is one: every prototype at the version that
// is asked for, every struct's size and layout, every constant. All of it at compile time; the test
// at the end says whether anything was compared.
#if __has_include(<cudaTypedefs.h>)
#include <cuda.h>
#include <cudaTypedefs.h>
#endif

#include <type_traits>

#include <gtest/gtest.h>

#include "memory/cuda/api.hpp"

namespace wc::memory::cuda {
namespace {

#if __has_include(<cudaTypedefs.h>)

// The same to the machine: both pointers to the same, both integers (or enumerations) of one size,
// or both structs of one size and alignment.
template <typename Ours, typename Theirs>
consteval bool compatible() {
  using A = std::remove_cv_t<Ours>;
  using B = std::remove_cv_t<Theirs>;
  if constexpr (std::is_same_v<A, B>) {
    return true;
  } else if constexpr (std::is_pointer_v<A> && std::is_pointer_v<B>) {
    using To = std::remove_pointer_t<A>;
    using ToTheirs = std::remove_pointer_t<B>;
    if constexpr (std::is_const_v<To> != std::is_const_v<ToTheirs>) {
      return false;
    } else if constexpr (requires { sizeof(To) + sizeof(ToTheirs); }) {
      return compatible<To, ToTheirs>();
    } else {
      return std::is_class_v<std::remove_cv_t<To>> == std::is_class_v<std::remove_cv_t<ToTheirs>>;
    }
  } else {
    const bool numbers = (std::is_integral_v<A> || std::is_enum_v<A>) &&
                         (std::is_integral_v<B> || std::is_enum_v<B>);
    const bool structs = std::is_class_v<A> && std::is_class_v<B>;
    return (numbers || structs) && sizeof(A) == sizeof(B) && alignof(A) == alignof(B);
  }
}

template <typename Ours, typename Theirs>
struct Match : std::false_type {};

template <typename R, typename... Ours, typename RTheirs, typename... Theirs>
  requires(sizeof...(Ours) == sizeof...(Theirs))
struct Match<R(Ours...), RTheirs (*)(Theirs...)>
    : std::bool_constant<compatible<R, RTheirs>() && (compatible<Ours, Theirs>() && ...)> {};

#define WC_CU(kind, name, version, prototype)                              \
  static_assert(Match<CuResult prototype, PFN_##name##_v##version>::value, \
                #name " differs from cuda.h");
#include "memory/cuda/functions.inc"
#undef WC_CU

static_assert(sizeof(CuMemAllocationProp) == sizeof(CUmemAllocationProp));
static_assert(offsetof(CuMemAllocationProp, requested_handle_types) ==
              offsetof(CUmemAllocationProp, requestedHandleTypes));
static_assert(offsetof(CuMemAllocationProp, location) == offsetof(CUmemAllocationProp, location));
static_assert(offsetof(CuMemAllocationProp, win32_handle_meta_data) ==
              offsetof(CUmemAllocationProp, win32HandleMetaData));
static_assert(offsetof(CuMemAllocationProp, alloc_flags) ==
              offsetof(CUmemAllocationProp, allocFlags));
static_assert(offsetof(CuMemAllocationProp, alloc_flags.gpu_direct_rdma_capable) ==
              offsetof(CUmemAllocationProp, allocFlags.gpuDirectRDMACapable));
static_assert(offsetof(CuMemAccessDesc, location) == offsetof(CUmemAccessDesc, location));
static_assert(offsetof(CuMemAccessDesc, flags) == offsetof(CUmemAccessDesc, flags));
static_assert(CuMemAllocationProp{}.type == CU_MEM_ALLOCATION_TYPE_PINNED);
static_assert(CuMemLocation{}.type == CU_MEM_LOCATION_TYPE_DEVICE);

#define WC_SAME(ours, theirs) static_assert(static_cast<long>(ours) == static_cast<long>(theirs))
WC_SAME(CuResult::invalid_value, CUDA_ERROR_INVALID_VALUE);
WC_SAME(CuResult::out_of_memory, CUDA_ERROR_OUT_OF_MEMORY);
WC_SAME(CuResult::not_initialized, CUDA_ERROR_NOT_INITIALIZED);
WC_SAME(CuResult::deinitialized, CUDA_ERROR_DEINITIALIZED);
WC_SAME(CuResult::no_device, CUDA_ERROR_NO_DEVICE);
WC_SAME(CuResult::invalid_device, CUDA_ERROR_INVALID_DEVICE);
WC_SAME(CuResult::device_unavailable, CUDA_ERROR_DEVICE_UNAVAILABLE);
WC_SAME(CuResult::operating_system, CUDA_ERROR_OPERATING_SYSTEM);
WC_SAME(CuResult::not_found, CUDA_ERROR_NOT_FOUND);
WC_SAME(CuResult::not_ready, CUDA_ERROR_NOT_READY);
WC_SAME(CuResult::illegal_address, CUDA_ERROR_ILLEGAL_ADDRESS);
WC_SAME(CuResult::not_permitted, CUDA_ERROR_NOT_PERMITTED);
WC_SAME(CuResult::not_supported, CUDA_ERROR_NOT_SUPPORTED);
WC_SAME(CuResult::unknown, CUDA_ERROR_UNKNOWN);
WC_SAME(kHandlePosixFd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
WC_SAME(kHandleFabric, CU_MEM_HANDLE_TYPE_FABRIC);
WC_SAME(kAccessRead, CU_MEM_ACCESS_FLAGS_PROT_READ);
WC_SAME(kAccessReadWrite, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
WC_SAME(kGranularityMinimum, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
WC_SAME(kStreamNonBlocking, CU_STREAM_NON_BLOCKING);
WC_SAME(kEventDisableTiming, CU_EVENT_DISABLE_TIMING);
WC_SAME(kHostRegisterPortable, CU_MEMHOSTREGISTER_PORTABLE);
WC_SAME(kAttributeVmmSupported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
WC_SAME(kAttributePosixFdSupported,
        CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
WC_SAME(kAttributeFabricSupported, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED);
WC_SAME(kAttributePciBusId, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
WC_SAME(kAttributePciDeviceId, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
WC_SAME(kAttributePciDomainId, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
#undef WC_SAME

TEST(CudaHeaderTest, DeclarationsAreTheToolkits) { SUCCEED() << "compared at compile time"; }

#else

TEST(CudaHeaderTest, DeclarationsAreTheToolkits) { GTEST_SKIP() << "no CUDA toolkit here"; }

#endif

}  // namespace
}  // namespace wc::memory::cuda
