// The kernel's small text files, whole, and the numbers in them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace wc::memory {

/// A file of /proc or /sys, 1 MiB of it at most. Errors: not_found (no such file), io.
[[nodiscard]] Result<std::string> read_text(const std::string& path);

/// The pieces between separators; empty ones only between two of them.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);

/// Decimal digits and nothing else.
[[nodiscard]] std::optional<std::uint64_t> number_in(std::string_view text);

/// The number behind a key at the start of a line: "MemAvailable:   123 kB", "inactive_file 123".
[[nodiscard]] std::optional<std::uint64_t> number_behind(std::string_view key,
                                                         std::string_view text);

}  // namespace wc::memory
