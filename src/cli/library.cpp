#include "cli/library.hpp"

#include <unistd.h>

#include "cli/terminal.hpp"
#include "cli/text.hpp"

namespace wc::cli {
namespace {

void show_line(int level, const char* line, void*) {
  if (level < WC_LOG_WARNING) return;
  // On a terminal a bar may be in the way; it is drawn anew with the next progress.
  const FdView out(STDERR_FILENO);
  const char* const erase = terminal_at(out).interactive ? "\r\x1b[K" : "";
  const char* const kind = level >= WC_LOG_ERROR ? "error" : "warning";
  write_if_possible(out, format("{}weightcache: {}: {}\n", erase, kind, printable(or_empty(line))));
}

}  // namespace

void show_warnings() { wc_set_log(show_line, nullptr); }

Failure last_failure() {
  const int code = wc_last_error_code();
  if (code == WC_OK) return fail(Code::internal, "the library failed without an error");
  return Failure(
      Error{code_of(code), or_empty(wc_last_error_message()), or_empty(wc_last_error_origin())});
}

}  // namespace wc::cli
