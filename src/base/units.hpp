// Numbers as people read them, and as they type them. Binary units for sizes (GiB), decimal ones
// for rates (GB/s), as the field does.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace wc {

inline constexpr std::uint64_t kKiB = std::uint64_t{1} << 10;
inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

/// 2147483648 -> "2.0 GiB"; below 1 KiB "512 B".
[[nodiscard]] std::string format_bytes(std::uint64_t bytes);
/// 9110454272 -> "9,110,454,272".
[[nodiscard]] std::string format_count(std::uint64_t count);
/// "1.5 GB/s"; "-" where no time has passed.
[[nodiscard]] std::string format_rate(std::uint64_t bytes, std::chrono::nanoseconds time);
/// "830 ns", "1.5 ms", "12.3 s", "4 min 05 s", "2 h 03 min".
[[nodiscard]] std::string format_duration(std::chrono::nanoseconds time);

/// "64GiB", "512 MiB", "1.5G" (binary), "10GB" (decimal), "4096". Errors: invalid_argument.
[[nodiscard]] Result<std::uint64_t> parse_bytes(std::string_view text);
/// "10" (seconds), "1.5s", "250ms", "10m", "2h". Errors: invalid_argument.
[[nodiscard]] Result<std::chrono::nanoseconds> parse_duration(std::string_view text);

}  // namespace wc
