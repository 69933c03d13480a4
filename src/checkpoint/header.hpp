// The header of one safetensors file, from bytes to a checked table: rules of the format, of JSON,
// and that the tensors cover the data exactly. Pure: it opens nothing and sees only the bytes and
// the file's size; this is what is fuzzed. What it accepts, every honest parser accepts, with the
// same meaning. One HeaderParser for each thread; it keeps its buffers from one file to the next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"
#include "base/result.hpp"
#include "checkpoint/checkpoint.hpp"
#include "checkpoint/names.hpp"

namespace wc::checkpoint {

inline constexpr std::uint64_t kLengthBytes = 8;
inline constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;
inline constexpr std::size_t kMaxTensors = 1'000'000;
inline constexpr std::size_t kMaxRank = 64;

struct HeaderTensor {
  std::string_view name;
  std::span<const std::int64_t> shape;
  std::uint64_t begin = 0;  // in the data
  std::uint64_t end = 0;
  Dtype dtype = Dtype::u8;
};

struct Header {
  std::vector<HeaderTensor> tensors;  // in the order of their bytes
  std::vector<HashedName> names;      // sorted; `at` is the index in `tensors`
  std::vector<Metadata> metadata;     // in the file's order
  std::uint64_t data_offset = 0;      // in the file
  std::uint64_t trailing_bytes = 0;   // only with `allow_trailing`
  /// Owns all names, shapes and metadata.
  std::unique_ptr<std::pmr::monotonic_buffer_resource> arena;
};

struct HeaderRules {
  bool compat = false;
  bool allow_trailing = false;
};

/// Rules 1 to 3: N, from the first bytes of a file of `file_bytes`. Errors: corrupt.
[[nodiscard]] Result<std::uint64_t> header_length(std::span<const std::byte> first_bytes,
                                                  std::uint64_t file_bytes);

/// Rule 4, from as much of the header as is there: so that a file of another kind is refused before
/// memory is taken for its header. Errors: corrupt.
[[nodiscard]] Result<> check_header_start(std::string_view start, const HeaderRules& rules);

class HeaderParser {
 public:
  HeaderParser();
  ~HeaderParser();
  HeaderParser(HeaderParser&&) noexcept;
  HeaderParser& operator=(HeaderParser&&) noexcept;

  /// `file`: the first bytes of a file of `file_bytes`, with the whole header (or what there is of
  /// it). Errors: corrupt, exhausted (no memory).
  [[nodiscard]] Result<Header> parse(std::span<const std::byte> file, std::uint64_t file_bytes,
                                     const HeaderRules& rules = {});

  /// The same in two steps, without a copy: room for the header's N bytes, to be filled; then the
  /// parsing of what is in it.
  [[nodiscard]] std::span<char> room(std::uint64_t header_bytes);
  [[nodiscard]] Result<Header> parse_room(std::uint64_t file_bytes, const HeaderRules& rules = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace wc::checkpoint
