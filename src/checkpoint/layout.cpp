#include "checkpoint/layout.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "base/units.hpp"
#include "checkpoint/text.hpp"

namespace wc::checkpoint {
namespace {

constexpr std::uint64_t kMaxElements = std::numeric_limits<std::int64_t>::max();

std::string text_of_shape(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (const std::int64_t dimension : shape) {
    if (text.size() > 1) text += ", ";
    text += format("{}", dimension);
  }
  return text + "]";
}

bool before(const HeaderTensor& left, const HeaderTensor& right) {
  if (left.begin != right.begin) return left.begin < right.begin;
  return left.end != right.end ? left.end < right.end : left.name < right.name;
}

Result<> check_offsets(const HeaderTensor& tensor, std::uint64_t data_bytes) {
  if (tensor.begin > tensor.end) {
    return fail(Code::corrupt, "data_offsets begin {} is past their end {}",
                format_count(tensor.begin), format_count(tensor.end));
  }
  if (tensor.end > data_bytes) {
    return fail(Code::corrupt, "data_offsets end {} is past the data's length {}",
                format_count(tensor.end), format_count(data_bytes));
  }
  const std::uint64_t bytes = TRY(bytes_of(tensor.dtype, tensor.shape));
  if (tensor.end - tensor.begin != bytes) {
    return fail(Code::corrupt, "data_offsets [{}, {}] span {} bytes, but {} of shape {} takes {}",
                format_count(tensor.begin), format_count(tensor.end),
                format_count(tensor.end - tensor.begin), name_of(tensor.dtype),
                text_of_shape(tensor.shape), format_count(bytes));
  }
  return {};
}

// Rule 20 for one tensor, where the ones before it end at `covered`.
Result<> check_neighbours(const HeaderTensor* previous, const HeaderTensor& tensor,
                          std::uint64_t covered) {
  if (tensor.begin > covered) {
    return fail(Code::corrupt,
                "tensor {}: a hole before it: bytes {} to {} of the data belong to "
                "no tensor",
                in_quotes(tensor.name), format_count(covered), format_count(tensor.begin));
  }
  if (tensor.begin < covered && previous != nullptr) {
    return fail(Code::corrupt, "tensor {}: its bytes {} to {} overlap those of tensor {}, {} to {}",
                in_quotes(tensor.name), format_count(tensor.begin), format_count(tensor.end),
                in_quotes(previous->name), format_count(previous->begin),
                format_count(previous->end));
  }
  return {};
}

}  // namespace

Result<std::uint64_t> bytes_of(Dtype dtype, std::span<const std::int64_t> shape) {
  // The product without the zeros is what must fit: then no order of multiplying overflows.
  std::uint64_t product = 1;
  bool has_zero = false;
  for (const std::int64_t dimension : shape) {
    has_zero = has_zero || dimension == 0;
    if (dimension == 0) continue;
    const bool overflow =
        __builtin_mul_overflow(product, static_cast<std::uint64_t>(dimension), &product);
    if (overflow || product > kMaxElements) {
      return fail(Code::corrupt, "shape {}: the product of the dimensions is past 2^63 - 1",
                  text_of_shape(shape));
    }
  }
  const std::uint64_t elements = has_zero ? 0 : product;
  std::uint64_t bits = 0;
  if (__builtin_mul_overflow(elements, std::uint64_t{bits_of(dtype)}, &bits)) {
    return fail(Code::corrupt, "{} elements of {} bits each are more bits than 2^64 - 1",
                format_count(elements), bits_of(dtype));
  }
  if (bits % 8 != 0) {
    return fail(Code::corrupt, "{} elements of {} ({} bits each) do not fill whole bytes",
                format_count(elements), name_of(dtype), bits_of(dtype));
  }
  return bits / 8;
}

void sort_by_place(std::vector<HeaderTensor>& tensors) {
  // Nearly every writer lists its tensors in this order.
  if (std::is_sorted(tensors.begin(), tensors.end(), before)) return;
  std::sort(tensors.begin(), tensors.end(), before);
}

Result<std::uint64_t> check_layout(std::span<const HeaderTensor> tensors, std::uint64_t data_bytes,
                                   bool allow_trailing) {
  for (const HeaderTensor& tensor : tensors) {
    auto checked = check_offsets(tensor, data_bytes);
    if (!checked) {
      return Failure(
          std::move(checked).error().within(format("tensor {}: ", in_quotes(tensor.name))));
    }
  }
  std::uint64_t covered = 0;
  const HeaderTensor* previous = nullptr;
  for (const HeaderTensor& tensor : tensors) {
    TRY(check_neighbours(previous, tensor, covered));
    covered = tensor.end;
    if (tensor.begin != tensor.end) previous = &tensor;
  }
  if (covered != data_bytes && !allow_trailing) {
    const std::string after = previous != nullptr
                                  ? "after the last tensor, " + in_quotes(previous->name)
                                  : std::string("without any tensor");
    return fail(Code::corrupt,
                "{} bytes of data {}, belong to no tensor ({} to {}; "
                "allow_trailing passes over them)",
                format_count(data_bytes - covered), after, format_count(covered),
                format_count(data_bytes));
  }
  return data_bytes - covered;
}

}  // namespace wc::checkpoint
