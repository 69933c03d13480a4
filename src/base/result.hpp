// Result<T>: a value or an Error, and the three ways to make and pass one on.
// TRY stands only as the whole right-hand side of a statement: inside a larger expression GCC 12
// leaks what was already built.
#pragma once

#include <cerrno>
#include <expected>
#include <type_traits>
#include <utility>

#include "base/error.hpp"

namespace wc {

template <typename T = void>
using Result = std::expected<T, Error>;

using Failure = std::unexpected<Error>;

/// return fail(Code::corrupt, "\"{}\": length {}", name, n);
template <typename... Args>
[[nodiscard]] Failure fail(Code code, fmt::format_string<Args...> text, Args&&... args) {
  return Failure(Error{code, detail::vformat(text, fmt::make_format_args(args...)), {}});
}

/// A system call failed: the message gets the errno's description, the origin its name.
/// errno is read first, so the arguments may not change it: return fail_errno("open \"{}\"", path);
template <typename... Args>
[[nodiscard]] Failure fail_errno(fmt::format_string<Args...> text, Args&&... args) {
  const int number = errno;
  return Failure(
      detail::os_error(Code::io, number, detail::vformat(text, fmt::make_format_args(args...))));
}

/// The same with another code than `io`, and an errno kept from before.
template <typename... Args>
[[nodiscard]] Failure fail_os(Code code, int number, fmt::format_string<Args...> text,
                              Args&&... args) {
  return Failure(
      detail::os_error(code, number, detail::vformat(text, fmt::make_format_args(args...))));
}

namespace detail {
template <typename T>
T take(std::expected<T, Error>& result) {
  if constexpr (std::is_void_v<T>) {
    return;
  } else {
    return std::move(*result);
  }
}
}  // namespace detail

}  // namespace wc

// NOLINTBEGIN(cppcoreguidelines-macro-usage): only a macro can return from its caller.
#define TRY(...)                                            \
  __extension__({                                           \
    auto try_result_ = (__VA_ARGS__);                       \
    if (!try_result_) [[unlikely]]                          \
      return ::wc::Failure(std::move(try_result_).error()); \
    ::wc::detail::take(try_result_);                        \
  })
// NOLINTEND(cppcoreguidelines-macro-usage)
