// The border: the body of every exported function that can fail runs inside guarded().
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <string_view>
#include <utility>

#include "api/last_error.hpp"
#include "base/result.hpp"
#include "base/units.hpp"

namespace wc::api {

/// Runs `body`, which returns Result<>, and turns what it returns or throws into the ABI's number.
template <typename Body>
int guarded(Body&& body) noexcept {
  try {
    Result<> result = std::forward<Body>(body)();
    return result ? 0 : keep_error(std::move(result).error());
  } catch (const std::bad_alloc&) {
    return keep_out_of_memory();
  } catch (const std::exception& exception) {
    return keep_exception(exception.what());
  } catch (...) {
    return keep_exception("of unknown type");
  }
}

/// Errors: invalid_argument where the pointer is NULL. `what` is the parameter's name.
[[nodiscard]] inline Result<> required(const void* pointer, std::string_view what) {
  if (pointer == nullptr) return fail(Code::invalid_argument, "\"{}\" is NULL", what);
  return {};
}

/// Errors: invalid_argument where `index` is not below `count`. `what` is counted in `whole`.
[[nodiscard]] inline Result<> check_index(std::size_t index, std::size_t count,
                                          std::string_view what, std::string_view whole) {
  if (index < count) return {};
  return fail(Code::invalid_argument, "there is no {} {}: the {} has {}", what, format_count(index),
              whole, format_count(count));
}

/// A text that may be NULL.
[[nodiscard]] inline std::string_view text_or_empty(const char* text) {
  return text == nullptr ? std::string_view() : std::string_view(text);
}

/// A time of the ABI; one that no clock can reach is the longest there is.
[[nodiscard]] inline std::chrono::nanoseconds duration_of(std::uint64_t ns) {
  constexpr auto kLongest = std::chrono::nanoseconds::max();
  const bool fits = ns < static_cast<std::uint64_t>(kLongest.count());
  return fits ? std::chrono::nanoseconds(static_cast<std::int64_t>(ns)) : kLongest;
}

}  // namespace wc::api
