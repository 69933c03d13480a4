// The calling thread's last failure: what wc_last_error_*() tell. A successful call leaves it
// alone.
#pragma once

#include "base/error.hpp"

namespace wc::api {

/// Keeps the error for the calling thread. Returns its code as the C ABI's number.
int keep_error(Error&& error) noexcept;

/// Memory ran out in this process: kept without allocating any.
int keep_out_of_memory() noexcept;

/// An exception that is a bug of ours; `what` says which.
int keep_exception(const char* what) noexcept;

}  // namespace wc::api
