#include "api/dlpack.hpp"

#include <array>
#include <memory>
#include <vector>

#include "api/attachment.hpp"
#include "api/guard.hpp"
#include "api/structs.hpp"
#include "base/units.hpp"

namespace wc::api {
namespace {

// Ranks above this take an allocation of their own.
constexpr std::size_t kInlineRank = 4;

template <typename Head>
struct Made {
  Head head{};
  AttachmentKeeper keeper;
  std::array<std::int64_t, 2 * kInlineRank> few{};
  std::unique_ptr<std::int64_t[]> many;

  explicit Made(const wc_attachment& attachment) : keeper(attachment) {}

  // Room for shape and strides.
  std::int64_t* numbers(std::size_t rank) {
    if (rank <= kInlineRank) return few.data();
    many = std::make_unique<std::int64_t[]>(2 * rank);
    return many.get();
  }
};

dlpack::DataType type_of(Dtype dtype) {
  const auto bits = static_cast<std::uint8_t>(bits_of(dtype));
  const auto typed = [bits](dlpack::TypeCode code) { return dlpack::DataType{code, bits, 1}; };
  switch (static_cast<int>(dtype)) {
    case WC_BOOL:
      return typed(dlpack::kBool);
    case WC_F4:
      return typed(dlpack::kFloat4E2M1FN);
    case WC_F6_E2M3:
      return typed(dlpack::kFloat6E2M3FN);
    case WC_F6_E3M2:
      return typed(dlpack::kFloat6E3M2FN);
    case WC_F8_E5M2:
      return typed(dlpack::kFloat8E5M2);
    case WC_F8_E4M3:
      return typed(dlpack::kFloat8E4M3FN);
    case WC_F8_E8M0:
      return typed(dlpack::kFloat8E8M0FNU);
    case WC_F8_E4M3FNUZ:
      return typed(dlpack::kFloat8E4M3FNUZ);
    case WC_F8_E5M2FNUZ:
      return typed(dlpack::kFloat8E5M2FNUZ);
    case WC_I8:
    case WC_I16:
    case WC_I32:
    case WC_I64:
      return typed(dlpack::kInt);
    case WC_F16:
    case WC_F32:
    case WC_F64:
      return typed(dlpack::kFloat);
    case WC_BF16:
      return typed(dlpack::kBfloat);
    case WC_C64:
      return typed(dlpack::kComplex);
    default:
      return typed(dlpack::kUInt);
  }
}

struct Shape {
  std::span<const std::int64_t> dimensions;
  std::span<const std::int64_t> strides;  // empty: row-major
};

void put_shape(const Shape& shape, std::int64_t* numbers, dlpack::Tensor& out) {
  const std::size_t rank = shape.dimensions.size();
  out.ndim = static_cast<std::int32_t>(rank);
  out.shape = numbers;
  out.strides = numbers + rank;
  std::copy(shape.dimensions.begin(), shape.dimensions.end(), out.shape);
  if (!shape.strides.empty()) {
    std::copy(shape.strides.begin(), shape.strides.end(), out.strides);
    return;
  }
  std::int64_t step = 1;
  for (std::size_t i = rank; i-- > 0;) {
    out.strides[i] = step;
    step *= std::max<std::int64_t>(out.shape[i], 1);
  }
}

// The same memory as bytes: the last dimension counts bytes instead of elements.
Result<std::vector<std::int64_t>> shape_in_bytes(const manifest::TensorView& tensor) {
  std::vector<std::int64_t> shape(tensor.shape.begin(), tensor.shape.end());
  const std::int64_t bits = bits_of(tensor.dtype);
  if (bits == 8) return shape;
  if (!tensor.strides.empty())
    return fail(Code::unsupported, "tensor \"{}\": {} with strides has no form in bytes",
                tensor.name, name_of(tensor.dtype));
  if (shape.empty()) shape.push_back(1);
  if (shape.back() * bits % 8 != 0)
    return fail(Code::unsupported,
                "tensor \"{}\": the last dimension, {} elements of {}, is no whole number of bytes",
                tensor.name, shape.back(), name_of(tensor.dtype));
  shape.back() = shape.back() * bits / 8;
  return shape;
}

thread_local const void* t_watched = nullptr;

template <typename Head>
void delete_made(Head* head) {
  if (head == t_watched) t_watched = nullptr;
  std::unique_ptr<Made<Head>> last(static_cast<Made<Head>*>(head->context));
}

template <typename Head>
Result<std::unique_ptr<Made<Head>>> make(const wc_attachment& attachment, std::uint32_t index,
                                         std::uint32_t as_bytes) {
  const manifest::TensorView tensor = attachment.manifest->tensor(index);
  auto made = std::make_unique<Made<Head>>(attachment);
  dlpack::Tensor& out = made->head.tensor;
  out.data = reinterpret_cast<void*>(
      static_cast<std::uintptr_t>(attachment.segments[tensor.segment] + tensor.offset));
  const int ordinal = attachment.inner->device().info().ordinal;
  out.device_type = ordinal < 0 ? dlpack::kCpu : dlpack::kCuda;
  out.device_id = std::max(ordinal, 0);
  if ((as_bytes >> static_cast<unsigned>(tensor.dtype) & 1U) != 0) {
    const auto dimensions = TRY(shape_in_bytes(tensor));
    out.dtype = {dlpack::kUInt, 8, 1};
    put_shape({dimensions, tensor.strides}, made->numbers(dimensions.size()), out);
  } else {
    out.dtype = type_of(tensor.dtype);
    put_shape({tensor.shape, tensor.strides}, made->numbers(tensor.shape.size()), out);
  }
  made->head.context = made.get();
  made->head.deleter = delete_made<Head>;
  if constexpr (std::is_same_v<Head, dlpack::ManagedVersioned>) {
    made->head.major = dlpack::kMajor;
    made->head.minor = dlpack::kMinor;
    if (attachment.inner->access() == memory::Access::shared_read)
      made->head.flags = dlpack::kReadOnly;
  }
  return made;
}

template <typename Head>
Result<> make_all(const wc_attachment& attachment, std::uint32_t first, std::span<void*> out,
                  std::uint32_t as_bytes) {
  std::vector<std::unique_ptr<Made<Head>>> made;
  made.reserve(out.size());
  for (std::uint32_t i = 0; i < out.size(); ++i) {
    auto tensor = TRY(make<Head>(attachment, first + i, as_bytes));
    made.push_back(std::move(tensor));
  }
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = &made[i].release()->head;
  return {};
}

}  // namespace

Result<> make_dlpack(const wc_attachment& attachment, const wc_dlpack_options& options,
                     std::size_t first, std::span<void*> out) {
  const std::size_t all = attachment.manifest->tensor_count();
  if (first > all || out.size() > all - first)
    return fail(Code::invalid_argument, "{} tensors from {} on: the entry has {}",
                format_count(out.size()), format_count(first), format_count(all));
  const auto from = static_cast<std::uint32_t>(first);
  return options.versioned != 0
             ? make_all<dlpack::ManagedVersioned>(attachment, from, out, options.as_bytes)
             : make_all<dlpack::Managed>(attachment, from, out, options.as_bytes);
}

DeletionWatch::DeletionWatch(const void* managed) { t_watched = managed; }

DeletionWatch::~DeletionWatch() { t_watched = nullptr; }

bool DeletionWatch::deleted() const { return t_watched == nullptr; }

}  // namespace wc::api

using wc::Result;
using wc::api::guarded;
using wc::api::required;
namespace dlpack = wc::api::dlpack;

extern "C" {

int wc_attachment_dlpack(const wc_attachment* attachment, const wc_dlpack_options* options,
                         size_t first, size_t count, void** out) {
  return guarded([&]() -> Result<> {
    TRY(required(attachment, "attachment"));
    const auto known = TRY(wc::api::take_struct_or_default(options, "wc_dlpack_options"));
    if (count > 0) TRY(required(out, "out"));
    return wc::api::make_dlpack(*attachment, known, first, {out, count});
  });
}

void wc_dlpack_delete(void* managed, int versioned) {
  if (managed == nullptr) return;
  if (versioned != 0) {
    auto* tensor = static_cast<dlpack::ManagedVersioned*>(managed);
    tensor->deleter(tensor);
  } else {
    auto* tensor = static_cast<dlpack::Managed*>(managed);
    tensor->deleter(tensor);
  }
}

size_t wc_attachment_living(const wc_attachment* attachment) {
  return attachment == nullptr ? 0 : attachment->keepers.load(std::memory_order_acquire) - 1;
}

}  // extern "C"
