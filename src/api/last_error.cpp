#include "api/last_error.hpp"

#include <new>
#include <utility>

#include "weightcache/weightcache.h"

#include "base/result.hpp"

namespace wc::api {
namespace {

Error& last() {
  // Made at a thread's first failure, so that loading the library runs no constructor.
  thread_local Error error{Code::ok, {}, {}};
  return error;
}

}  // namespace

int keep_error(Error&& error) noexcept {
  last() = std::move(error);
  return static_cast<int>(last().code);
}

int keep_out_of_memory() noexcept {
  Error& error = last();
  error.code = Code::exhausted;
  error.message = "out of memory";  // short enough for the string's own room
  error.origin = "ENOMEM";
  return static_cast<int>(error.code);
}

int keep_exception(const char* what) noexcept {
  try {
    return keep_error(Error{Code::internal, format("unexpected exception: {}", what), {}});
  } catch (...) {
    return keep_out_of_memory();
  }
}

}  // namespace wc::api

extern "C" {

int wc_last_error_code(void) { return static_cast<int>(wc::api::last().code); }

const char* wc_last_error_message(void) { return wc::api::last().message.c_str(); }

const char* wc_last_error_origin(void) { return wc::api::last().origin.c_str(); }

}  // extern "C"
