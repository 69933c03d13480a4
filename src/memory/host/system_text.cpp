#include "memory/host/system_text.hpp"

#include <array>
#include <charconv>

#include <fcntl.h>
#include <unistd.h>

#include "base/fd.hpp"

namespace wc::memory {

Result<std::string> read_text(const std::string& path) {
  constexpr std::size_t kLimit = std::size_t{1} << 20;
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    const int error = errno;
    const bool absent = error == ENOENT || error == ENOTDIR;
    return fail_os(absent ? Code::not_found : Code::io, error, "open \"{}\"", path);
  }
  std::string text;
  std::array<char, 4096> piece = {};
  while (text.size() < kLimit) {
    const ssize_t got = ::read(fd.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno("read \"{}\"", path);
    if (got == 0) break;
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
  return text;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  while (!text.empty()) {
    const auto end = text.find(separator);
    pieces.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return pieces;
}

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, code] = std::from_chars(text.data(), end, number);
  if (code != std::errc{} || rest != end) return std::nullopt;
  return number;
}

std::optional<std::uint64_t> number_behind(std::string_view key, std::string_view text) {
  for (std::string_view line : split(text, '\n')) {
    if (!line.starts_with(key)) continue;
    line.remove_prefix(key.size());
    const auto from = line.find_first_not_of(' ');
    if (from == 0 || from == std::string_view::npos) continue;  // another key that begins like it
    line.remove_prefix(from);
    return number_in(line.substr(0, line.find(' ')));
  }
  return std::nullopt;
}

}  // namespace wc::memory
