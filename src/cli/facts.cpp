#include "cli/facts.hpp"

namespace wc::cli {

void add_common(Options& options, CommonOptions& out) {
  options
      .text(
          "--socket", "PATH", out.socket,
          "The daemon's socket (default: $WEIGHTCACHE_SOCKET, else the user's, else the system's)")
      .completes = Completes::path;
  options.flag("--json", out.json, "Answer with one JSON document, and nothing else, on stdout");
  options.choice("--progress", {"plain", "json", "none"}, out.progress,
                 "How to tell progress on stderr (default: a bar on a terminal, plain elsewhere)");
}

}  // namespace wc::cli
