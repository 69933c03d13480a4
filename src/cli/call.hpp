// One call of the program: its common options, its connection, where its answer goes. An answer is
// given once, as a document for --json or as text for people; what fails is returned, and told by
// main. Used by main's thread alone.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "cli/json.hpp"
#include "cli/library.hpp"
#include "cli/progress.hpp"
#include "cli/signals.hpp"
#include "cli/terminal.hpp"

namespace wc::cli {

struct CommonOptions {
  std::string socket;
  std::string progress;
  bool json = false;
};

class Call {
 public:
  Call(const CommonOptions& options, Signals& signals, std::string verb);

  /// Errors: as wc_connect.
  [[nodiscard]] Result<Connection> connect() const;

  /// Prints one of both. Errors: io.
  Result<> answer(const Json& document, std::string_view text);
  /// Prints an answer that is bad news, with the error in the document, and returns the error.
  Result<> answer_with(Json document, std::string_view text, Error error);
  /// A remark for people, on stderr; nothing with --json.
  void remark(std::string_view text) const;

  [[nodiscard]] Progress progress(std::string verb) const;
  [[nodiscard]] Signals& signals() { return signals_; }
  [[nodiscard]] const Terminal& out() const { return out_; }
  [[nodiscard]] const CommonOptions& common() const { return options_; }
  [[nodiscard]] bool answered() const { return answered_; }

 private:
  const CommonOptions& options_;
  Signals& signals_;
  std::string verb_;
  Terminal out_;
  bool answered_ = false;
};

/// `weightcache: CODE: message` on stderr, and with `document` {"error": ...} on stdout.
void tell_failure(const Error& error, bool document);

/// 0, or what a failure with this code ends the program with.
[[nodiscard]] int exit_status(Code code);

}  // namespace wc::cli
