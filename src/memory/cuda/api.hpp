// Our own declarations of the few types and constants of the CUDA driver API that are used here, so
// that the project builds without a toolkit. Where cuda.h exists, cuda_header_test.cpp holds every
// size, value and prototype of this file and of functions.inc against it.
// Source of the names and values: the CUDA driver API's public documentation, 11.3 to 13.0.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wc::memory::cuda {

enum class CuResult : int {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  not_initialized = 3,
  deinitialized = 4,
  no_device = 100,
  invalid_device = 101,
  device_unavailable = 46,
  operating_system = 304,
  not_found = 500,
  not_ready = 600,
  illegal_address = 700,
  not_permitted = 800,
  not_supported = 801,
  unknown = 999,
};

using CuDevice = int;
using CuDevicePtr = unsigned long long;
using CuMemHandle = unsigned long long;  // CUmemGenericAllocationHandle
using CuContext = struct CUctx_st*;
using CuStream = struct CUstream_st*;
using CuEvent = struct CUevent_st*;

struct CuUuid {
  char bytes[16];
};

struct CuMemLocation {
  int type = 1;  // CU_MEM_LOCATION_TYPE_DEVICE
  int id = 0;
};

struct CuMemAllocFlags {
  unsigned char compression_type = 0;
  unsigned char gpu_direct_rdma_capable = 0;
  unsigned short usage = 0;
  unsigned char reserved[4] = {};
};

struct CuMemAllocationProp {
  int type = 1;                    // CU_MEM_ALLOCATION_TYPE_PINNED
  int requested_handle_types = 1;  // bits of kHandlePosixFd, kHandleFabric
  CuMemLocation location;
  void* win32_handle_meta_data = nullptr;
  CuMemAllocFlags alloc_flags;
};

struct CuMemAccessDesc {
  CuMemLocation location;
  int flags = 0;  // kAccessRead, kAccessReadWrite
};

inline constexpr int kHandlePosixFd = 1;
inline constexpr int kHandleFabric = 8;
inline constexpr int kAccessRead = 1;
inline constexpr int kAccessReadWrite = 3;
inline constexpr int kGranularityMinimum = 0;
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDisableTiming = 2;
inline constexpr unsigned kHostRegisterPortable = 1;

// CUdevice_attribute
inline constexpr int kAttributeVmmSupported = 102;
inline constexpr int kAttributePosixFdSupported = 103;
inline constexpr int kAttributeFabricSupported = 128;
inline constexpr int kAttributePciBusId = 33;
inline constexpr int kAttributePciDeviceId = 34;
inline constexpr int kAttributePciDomainId = 50;

}  // namespace wc::memory::cuda
