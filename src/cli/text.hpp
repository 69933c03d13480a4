// Texts for a terminal. Names, labels and messages come from other processes: nothing of them
// reaches a terminal that could steer it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace wc::cli {

/// The same text with every control character, and every byte that is no UTF-8, as "\x1b".
[[nodiscard]] std::string printable(std::string_view text);
/// Cells that a printable text takes on a terminal: two for a wide character.
[[nodiscard]] std::size_t cells(std::string_view text);
/// At most `limit` cells, the last of them "…" where something was left out.
[[nodiscard]] std::string clipped(std::string_view text, std::size_t limit);
/// Lines of at most `limit` cells, broken at spaces, each but the first indented by `indent`.
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t limit, std::size_t indent);

/// "1 reader", "2 readers", "1,234 readers".
[[nodiscard]] std::string counted(std::uint64_t count, std::string_view noun);
/// "42 s", "3 min 20 s", "5 days" between two moments in Unix time; "-" for a moment that is none.
[[nodiscard]] std::string age(std::int64_t since_unix_ns, std::int64_t now_unix_ns);
[[nodiscard]] std::int64_t now_unix_ns();
/// Seconds with their fraction, for JSON.
[[nodiscard]] double seconds_of(std::uint64_t ns);

}  // namespace wc::cli
