#include "cli/call.hpp"

#include <utility>

#include <unistd.h>

#include "cli/text.hpp"

namespace wc::cli {

Call::Call(const CommonOptions& options, Signals& signals, std::string verb)
    : options_(options),
      signals_(signals),
      verb_(std::move(verb)),
      out_(terminal_at(FdView(STDOUT_FILENO))) {}

Result<Connection> Call::connect() const {
  const std::string label = "weightcache " + verb_;
  wc_connect_options options = WC_CONNECT_OPTIONS_INIT;
  options.socket = options_.socket.empty() ? nullptr : options_.socket.c_str();
  options.label = label.c_str();
  return made<Connection>([&](wc_connection** out) { return wc_connect(&options, out); });
}

Result<> Call::answer(const Json& document, std::string_view text) {
  answered_ = true;
  return write_all(FdView(STDOUT_FILENO),
                   options_.json ? dumped(document) + '\n' : std::string(text));
}

Result<> Call::answer_with(Json document, std::string_view text, Error error) {
  document["error"] = error_json(error);
  TRY(answer(document, text));
  return Failure(std::move(error));
}

void Call::remark(std::string_view text) const {
  if (!options_.json) write_if_possible(FdView(STDERR_FILENO), text);
}

Progress Call::progress(std::string verb) const {
  const Terminal terminal = terminal_at(FdView(STDERR_FILENO));
  return {progress_mode(options_.progress, terminal), terminal, std::move(verb)};
}

void tell_failure(const Error& error, bool document) {
  // Where stderr or stdout is gone there is nobody left to tell.
  write_if_possible(FdView(STDERR_FILENO),
                    format("weightcache: {}: {}\n", name_of(error.code), printable(error.message)));
  if (!document) return;
  write_if_possible(FdView(STDOUT_FILENO), dumped(Json{{"error", error_json(error)}}) + '\n');
}

int exit_status(Code code) {
  switch (code) {
    case Code::ok:
      return 0;
    case Code::invalid_argument:
      return 2;
    case Code::not_found:
      return 3;
    case Code::disconnected:
      return 4;
    case Code::timed_out:
      return 5;
    case Code::exhausted:
      return 6;
    default:
      return 1;
  }
}

}  // namespace wc::cli
