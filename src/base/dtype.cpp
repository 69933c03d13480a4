#include "base/dtype.hpp"

#include <array>

namespace wc {
namespace {

struct Row {
  std::string_view name;
  unsigned bits;
};

// Row n describes the Dtype with the number n + 1.
constexpr std::array<Row, 22> kRows = {{
    {"BOOL", 8},        {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
    {"I8", 8},          {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
    {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16},    {"BF16", 16},
    {"I32", 32},        {"U32", 32},    {"F32", 32},    {"C64", 64},    {"F64", 64},
    {"I64", 64},        {"U64", 64},
}};

const Row& row_of(Dtype dtype) { return kRows.at(static_cast<std::size_t>(dtype) - 1); }

}  // namespace

std::string_view name_of(Dtype dtype) { return row_of(dtype).name; }

unsigned bits_of(Dtype dtype) { return row_of(dtype).bits; }

std::optional<Dtype> dtype_named(std::string_view name) {
  for (std::size_t at = 0; at < kRows.size(); ++at) {
    if (kRows.at(at).name == name) return static_cast<Dtype>(at + 1);
  }
  return std::nullopt;
}

std::optional<Dtype> dtype_numbered(unsigned number) {
  if (number < 1 || number > kRows.size()) return std::nullopt;
  return static_cast<Dtype>(number);
}

}  // namespace wc
