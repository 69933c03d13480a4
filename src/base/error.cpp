// fmt's implementation is compiled here and nowhere else: the library then needs no libfmt at run
// time, and the other files pay for its small header only.
#define FMT_HEADER_ONLY
#include "base/error.hpp"

#include <array>
#include <utility>

#include <fmt/format.h>
#include <string.h>

namespace wc {
namespace {

constexpr std::array<std::string_view, 17> kNames = {
    "ok",          "invalid_argument", "not_found", "already_exists", "mismatch",  "corrupt",
    "unsupported", "exhausted",        "busy",      "timed_out",      "cancelled", "disconnected",
    "denied",      "version",          "io",        "device",         "internal"};

}  // namespace

std::string_view name_of(Code code) {
  const auto at = static_cast<std::size_t>(-static_cast<int>(code));
  return at < kNames.size() ? kNames.at(at) : kNames.back();
}

Code code_of(int number) {
  return number <= 0 && number >= static_cast<int>(Code::internal) ? static_cast<Code>(number)
                                                                   : Code::internal;
}

Error Error::within(std::string_view context) && {
  message.insert(0, context);
  return std::move(*this);
}

std::string errno_name(int number) {
  const char* name = strerrorname_np(number);
  return name != nullptr ? std::string(name) : format("errno {}", number);
}

namespace detail {

std::string vformat(fmt::string_view text, fmt::format_args args) {
  return fmt::vformat(text, args);
}

Error os_error(Code code, int number, std::string message) {
  const char* reason = strerrordesc_np(number);
  message += ": ";
  message += reason != nullptr ? reason : "unknown error";
  return Error{code, std::move(message), errno_name(number)};
}

}  // namespace detail
}  // namespace wc
