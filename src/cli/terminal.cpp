#include "cli/terminal.hpp"

#include <array>
#include <cstdlib>

#include <sys/ioctl.h>
#include <unistd.h>

namespace wc::cli {
namespace {

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

constexpr std::array<std::string_view, 6> kEscapes = {"", "1", "2", "31", "32", "33"};

}  // namespace

Terminal terminal_at(FdView fd) {
  Terminal terminal;
  terminal.interactive = ::isatty(fd.get()) == 1;
  if (!terminal.interactive) return terminal;
  const char* type = std::getenv("TERM");
  const bool dumb = type == nullptr || std::string_view(type) == "dumb";
  terminal.colours = !dumb && !is_set("NO_COLOR");
  winsize size{};
  const bool known = ::ioctl(fd.get(), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  terminal.columns = known ? size.ws_col : 80;
  return terminal;
}

std::string painted(std::string_view text, Colour colour, const Terminal& terminal) {
  if (!terminal.colours || colour == Colour::none) return std::string(text);
  return format("\x1b[{}m{}\x1b[0m", kEscapes.at(static_cast<std::size_t>(colour)), text);
}

Result<> write_all(FdView fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail_errno("write of {} bytes to descriptor {}", text.size(), fd.get());
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

void write_if_possible(FdView fd, std::string_view text) {
  [[maybe_unused]] const auto written = write_all(fd, text);
}

}  // namespace wc::cli
