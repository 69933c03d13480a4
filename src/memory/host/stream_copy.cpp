#include "memory/host/stream_copy.hpp"

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace wc::memory {

#if defined(__x86_64__)

namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kLeast = std::size_t{32} << 10;  // below, memcpy through the cache is faster

void stream_lines(std::byte* to, const std::byte* from, std::size_t lines) {
  for (; lines > 0; --lines, to += kLine, from += kLine) {
    const auto* const source = reinterpret_cast<const __m128i*>(from);
    auto* const target = reinterpret_cast<__m128i*>(to);
    const __m128i a = _mm_loadu_si128(source);
    const __m128i b = _mm_loadu_si128(source + 1);
    const __m128i c = _mm_loadu_si128(source + 2);
    const __m128i d = _mm_loadu_si128(source + 3);
    _mm_stream_si128(target, a);
    _mm_stream_si128(target + 1, b);
    _mm_stream_si128(target + 2, c);
    _mm_stream_si128(target + 3, d);
  }
  _mm_sfence();
}

}  // namespace

void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes < kLeast) {
    std::memcpy(to, from, bytes);
    return;
  }
  const std::size_t head = (kLine - reinterpret_cast<std::uintptr_t>(to) % kLine) % kLine;
  std::memcpy(to, from, head);
  const std::size_t lines = (bytes - head) / kLine;
  stream_lines(to + head, from + head, lines);
  const std::size_t done = head + lines * kLine;
  std::memcpy(to + done, from + done, bytes - done);
}

#else

void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

#endif

}  // namespace wc::memory
