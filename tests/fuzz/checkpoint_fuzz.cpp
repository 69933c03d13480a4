// The checkpoint's reader against the naive one: the same verdict, and the same table, under all
// four sets of rules. An input that begins with a brace is taken for a header alone, with as much
// data as it speaks of, so that mutations need not keep the length field right; any other is a
// file.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <span>
#include <string>
#include <string_view>

#include "base/dtype.hpp"
#include "checkpoint/header.hpp"
#include "checkpoint_naive.hpp"

namespace {

using wc::checkpoint::Header;
using wc::checkpoint::HeaderParser;
using wc::fuzz::NaiveTable;

constexpr std::size_t kMaxInput = 64 * 1024;  // the naive reader compares each with each

NaiveTable plain(const Header& header) {
  NaiveTable table;
  for (const auto& tensor : header.tensors) {
    table.tensors.push_back({std::string(tensor.name),
                             std::string(wc::name_of(tensor.dtype)),
                             {tensor.shape.begin(), tensor.shape.end()},
                             tensor.begin,
                             tensor.end});
  }
  std::sort(table.tensors.begin(), table.tensors.end());
  for (const auto& [key, value] : header.metadata) table.metadata.emplace_back(key, value);
  table.trailing_bytes = header.trailing_bytes;
  return table;
}

[[noreturn]] void differ(std::string_view why, const std::string& message) {
  std::cerr << "the readers differ: " << why << (message.empty() ? "" : ": ") << message << "\n";
  std::abort();
}

void compare(HeaderParser& parser, std::string_view file, std::uint64_t file_bytes, bool compat,
             bool allow_trailing) {
  const auto header = parser.parse(std::as_bytes(std::span(file)), file_bytes,
                                   {.compat = compat, .allow_trailing = allow_trailing});
  const auto naive = wc::fuzz::read_naively(file, file_bytes,
                                            {.compat = compat, .allow_trailing = allow_trailing});
  if (header && !naive) differ("the naive one refuses", "");
  if (!header && naive) differ("the naive one accepts", header.error().message);
  if (!header && header.error().code != wc::Code::corrupt) {
    differ("an error that is not corrupt", header.error().message);
  }
  if (header && plain(*header) != *naive) differ("in the table", "");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > kMaxInput) return 0;
  std::string file(reinterpret_cast<const char*>(data), size);
  std::uint64_t file_bytes = size;
  if (file.starts_with('{')) {
    file_bytes = 8 + size + wc::fuzz::data_wanted(file);
    std::string length;
    for (int at = 0; at < 8; ++at) length += static_cast<char>(size >> (8 * at) & 0xFF);
    file.insert(0, length);
  }
  HeaderParser parser;
  for (const bool compat : {false, true}) {
    for (const bool allow_trailing : {false, true}) {
      compare(parser, file, file_bytes, compat, allow_trailing);
    }
  }
  return 0;
}
