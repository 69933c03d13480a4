// Small safetensors files for this folder's tests, as bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace wc::checkpoint::testing {

/// A number as 8 bytes, little-endian.
inline std::string length_field(std::uint64_t length) {
  std::string bytes;
  for (int at = 0; at < 8; ++at) bytes += static_cast<char>(length >> (8 * at) & 0xFF);
  return bytes;
}

/// A file with this header and so many bytes of data.
inline std::string file_of(std::string_view header, std::size_t data_bytes) {
  return length_field(header.size()) + std::string(header) + std::string(data_bytes, '\x5A');
}

/// A tensor's member of the header.
inline std::string member(std::string_view name, std::string_view fields) {
  return "\"" + std::string(name) + "\":{" + std::string(fields) + "}";
}

/// A tensor of bytes, from begin to end.
inline std::string u8(std::string_view name, std::uint64_t begin, std::uint64_t end) {
  return member(
      name, format(R"("dtype":"U8","shape":[{}],"data_offsets":[{},{}])", end - begin, begin, end));
}

}  // namespace wc::checkpoint::testing
