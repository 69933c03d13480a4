// What went wrong, as a value: a code that says what the caller can do next, a message for people,
// and the origin (the errno or CUresult, by name). The codes are the public ones of the C ABI and
// are never renumbered. No thread rule: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/core.h>

namespace wc {

enum class Code : int {
  ok = 0,
  invalid_argument = -1,  // fix the call
  not_found = -2,         // no such entry, file or name
  already_exists = -3,    // other content has the name
  mismatch = -4,          // other weights than asked for
  corrupt = -5,           // refetch the file, or report the peer
  unsupported = -6,       // other machine, driver or method
  exhausted = -7,         // free something, or wait
  busy = -8,              // retry
  timed_out = -9,         // the limit passed
  cancelled = -10,        // the caller said so
  disconnected = -11,     // connect again
  denied = -12,           // ask for the right
  version = -13,          // upgrade one side
  io = -14,               // the operating system refused
  device = -15,           // the GPU is suspect
  internal = -16,         // report a bug
};

/// The code's name as it stands in messages and documents: "not_found".
[[nodiscard]] std::string_view name_of(Code code);

/// The code with this number; `internal` for a number that is none.
[[nodiscard]] Code code_of(int number);

struct Error {
  Code code = Code::internal;
  std::string message;
  std::string origin;  // "ENOENT", "CUDA_ERROR_INVALID_VALUE"; empty where nothing below failed

  /// The same error, told from one level further out: "cannot load "x": " + message.
  [[nodiscard]] Error within(std::string_view context) &&;
};

/// "ENOENT" for 2; "errno 1234" for an unknown number.
[[nodiscard]] std::string errno_name(int number);

namespace detail {
[[nodiscard]] std::string vformat(fmt::string_view text, fmt::format_args args);
[[nodiscard]] Error os_error(Code code, int number, std::string message);
}  // namespace detail

/// fmt::format, compiled once for the whole library.
template <typename... Args>
[[nodiscard]] std::string format(fmt::format_string<Args...> text, Args&&... args) {
  return detail::vformat(text, fmt::make_format_args(args...));
}

}  // namespace wc
