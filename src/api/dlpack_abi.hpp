// DLPack's own structs and numbers (its version 1.1), as frameworks exchange tensors: a consumer
// reads the tensor and calls the deleter once, from any thread, when it has done with the memory.
// https://dmlc.github.io/dlpack/latest/c_api.html; Debian's libdlpack-dev is older than the
// versioned form.
#pragma once

#include <cstdint>

namespace wc::api::dlpack {

enum DeviceType : std::int32_t { kCpu = 1, kCuda = 2 };

enum TypeCode : std::uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kBfloat = 4,
  kComplex = 5,
  kBool = 6,
  kFloat8E4M3FN = 10,
  kFloat8E4M3FNUZ = 11,
  kFloat8E5M2 = 12,
  kFloat8E5M2FNUZ = 13,
  kFloat8E8M0FNU = 14,
  kFloat6E2M3FN = 15,
  kFloat6E3M2FN = 16,
  kFloat4E2M1FN = 17,
};

struct DataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct Tensor {
  void* data;
  std::int32_t device_type;
  std::int32_t device_id;
  std::int32_t ndim;
  DataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements
  std::uint64_t byte_offset;
};

struct Managed {
  Tensor tensor;
  void* context;
  void (*deleter)(Managed* self);
};

inline constexpr std::uint32_t kMajor = 1;
inline constexpr std::uint32_t kMinor = 1;
inline constexpr std::uint64_t kReadOnly = 1;

struct ManagedVersioned {
  std::uint32_t major;
  std::uint32_t minor;
  void* context;
  void (*deleter)(ManagedVersioned* self);
  std::uint64_t flags;
  Tensor tensor;
};

// What a framework's tensor type has in its capsule `__dlpack_c_exchange_api__` (DLPack 1.3). Each
// function returns 0, or -1 with a Python exception set.
struct ExchangeApi {
  std::uint32_t major;
  std::uint32_t minor;
  const ExchangeApi* previous;  // an older one's, or null
  void* managed_tensor_allocator;
  void* managed_tensor_from_object;
  int (*managed_tensor_to_object)(ManagedVersioned* taken, void** out);
  // further ones follow
};

}  // namespace wc::api::dlpack
