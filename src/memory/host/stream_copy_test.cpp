#include "memory/host/stream_copy.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

namespace wc::memory {
namespace {

TEST(StreamCopyTest, CopiesExactlyWhateverTheSizeAndAlignment) {
  constexpr std::size_t kMost = 100'000;
  constexpr std::byte kAround{0xAA};
  std::vector<std::byte> from(kMost + 100);
  for (std::size_t n = 0; n < from.size(); ++n) from[n] = static_cast<std::byte>(n * 7 + n / 256);
  for (const std::size_t bytes : {0U, 1U, 63U, 64U, 32'767U, 32'768U, 32'769U, 65'600U, 100'000U}) {
    for (const std::size_t to_skip : {0U, 1U, 16U, 63U, 64U}) {
      for (const std::size_t from_skip : {0U, 1U, 8U, 33U}) {
        std::vector<std::byte> to(kMost + 200, kAround);
        stream_copy(to.data() + to_skip, from.data() + from_skip, bytes);
        const auto begin = to.begin() + static_cast<std::ptrdiff_t>(to_skip);
        const auto end = begin + static_cast<std::ptrdiff_t>(bytes);
        EXPECT_TRUE(std::equal(begin, end, from.begin() + static_cast<std::ptrdiff_t>(from_skip)));
        const auto untouched = [](std::byte byte) { return byte == kAround; };
        EXPECT_TRUE(std::all_of(to.begin(), begin, untouched));
        EXPECT_TRUE(std::all_of(end, to.end(), untouched));
      }
    }
  }
}

}  // namespace
}  // namespace wc::memory
