// How far a load, a wait or a comparison is, on stderr: a bar on a terminal, lines or JSON objects
// (one a second at most) elsewhere. The library calls from several threads; a mutex orders them.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "cli/library.hpp"
#include "cli/terminal.hpp"

namespace wc::cli {

enum class ProgressMode { bar, plain, json, none };

/// Of --progress, with a bar on a terminal and plain lines elsewhere if it was not given.
[[nodiscard]] ProgressMode progress_mode(std::string_view asked, const Terminal& terminal);

// The texts, as functions of what they say. `verb` is "loading", "comparing".
[[nodiscard]] std::string bar_line(const wc_progress& progress, std::string_view verb,
                                   std::size_t columns);
[[nodiscard]] std::string plain_line(const wc_progress& progress, std::string_view verb);
[[nodiscard]] std::string json_line(const wc_progress& progress);

class Progress {
 public:
  Progress(ProgressMode mode, Terminal terminal, std::string verb);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// Takes the bar away, so that the next line begins on an empty one.
  ~Progress();

  /// For the library: function(progress, this).
  static void show(const wc_progress* progress, void* self);

 private:
  void draw(const wc_progress& progress);
  [[nodiscard]] bool due(const wc_progress& progress);

  ProgressMode mode_;
  Terminal terminal_;
  std::string verb_;
  std::mutex mutex_;
  bool drawn_ = false;  // a bar is on the terminal
  bool waiting_told_ = false;
  std::uint64_t last_ns_ = 0;  // of the last line
};

}  // namespace wc::cli
