#include "cli/library.hpp"

namespace wc::cli {

Failure last_failure() {
  const int code = wc_last_error_code();
  if (code == WC_OK) return fail(Code::internal, "the library failed without an error");
  return Failure(
      Error{code_of(code), or_empty(wc_last_error_message()), or_empty(wc_last_error_origin())});
}

}  // namespace wc::cli
