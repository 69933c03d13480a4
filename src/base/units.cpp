#include "base/units.hpp"

#include <array>
#include <charconv>
#include <cmath>

namespace wc {
namespace {

using std::chrono::nanoseconds;

struct Unit {
  std::string_view name;
  double factor;
};

constexpr std::array<Unit, 16> kByteUnits = {{{"", 1},
                                              {"B", 1},
                                              {"K", 0x1p10},
                                              {"M", 0x1p20},
                                              {"G", 0x1p30},
                                              {"T", 0x1p40},
                                              {"KiB", 0x1p10},
                                              {"MiB", 0x1p20},
                                              {"GiB", 0x1p30},
                                              {"TiB", 0x1p40},
                                              {"KB", 1e3},
                                              {"kB", 1e3},
                                              {"MB", 1e6},
                                              {"GB", 1e9},
                                              {"TB", 1e12},
                                              {"PiB", 0x1p50}}};

constexpr std::array<Unit, 8> kTimeUnits = {{{"", 1e9},
                                             {"ns", 1},
                                             {"us", 1e3},
                                             {"ms", 1e6},
                                             {"s", 1e9},
                                             {"m", 60e9},
                                             {"min", 60e9},
                                             {"h", 3600e9}}};

template <std::size_t N>
Result<double> parse_with(std::string_view text, const std::array<Unit, N>& units,
                          std::string_view what) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, code] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  if (code == std::errc{} && number >= 0 && std::isfinite(number)) {
    if (unit.starts_with(' ')) unit.remove_prefix(1);
    for (const auto& known : units) {
      const double value = number * known.factor;
      if (known.name == unit && value < 0x1p62) return value;
    }
  }
  return fail(Code::invalid_argument, "\"{}\" is not a {}", text, what);
}

}  // namespace

std::string format_bytes(std::uint64_t bytes) {
  constexpr std::array<const char*, 6> kNames = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (value >= 1023.95 && unit + 1 < kNames.size()) {
    value /= 1024;
    ++unit;
  }
  return format("{:.1f} {}", value, kNames.at(unit));
}

std::string format_count(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  }
  return digits;
}

std::string format_rate(std::uint64_t bytes, nanoseconds time) {
  if (time.count() <= 0) return "-";
  const double rate = static_cast<double>(bytes) * 1e9 / static_cast<double>(time.count());
  if (rate >= 1e9) return format("{:.1f} GB/s", rate / 1e9);
  if (rate >= 1e6) return format("{:.1f} MB/s", rate / 1e6);
  return format("{:.1f} kB/s", rate / 1e3);
}

std::string format_duration(nanoseconds time) {
  const auto ns = time.count();
  const auto value = static_cast<double>(ns);
  if (ns < 1'000) return format("{} ns", ns);
  if (value < 999.95e3) return format("{:.1f} us", value / 1e3);
  if (value < 999.95e6) return format("{:.1f} ms", value / 1e6);
  if (value < 59.95e9) return format("{:.1f} s", value / 1e9);
  const auto seconds = (ns + 500'000'000) / 1'000'000'000;
  if (seconds < 3600) return format("{} min {:02} s", seconds / 60, seconds % 60);
  return format("{} h {:02} min", seconds / 3600, seconds % 3600 / 60);
}

Result<std::uint64_t> parse_bytes(std::string_view text) {
  const double value = TRY(parse_with(text, kByteUnits, "size, like 64GiB or 512 MiB"));
  return static_cast<std::uint64_t>(std::llround(value));
}

Result<nanoseconds> parse_duration(std::string_view text) {
  const double value = TRY(parse_with(text, kTimeUnits, "duration, like 30s, 250ms or 2h"));
  return nanoseconds(std::llround(value));
}

}  // namespace wc
