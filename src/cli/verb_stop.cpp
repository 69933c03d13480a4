#include <memory>

#include "base/units.hpp"
#include "cli/call.hpp"
#include "cli/verb.hpp"

namespace wc::cli {
namespace {

Result<> run(bool drop, Call& call) {
  const auto connection = TRY(call.connect());
  auto daemon = sized<wc_daemon_info>();
  TRY(check(wc_connection_daemon(connection.get(), &daemon)));
  const std::int32_t pid = daemon.pid;
  std::uint64_t kept = 0;
  std::uint64_t dropped = 0;
  TRY(check(wc_stop(connection.get(), drop ? 1 : 0, &kept, &dropped)));
  const Json document = {{"pid", pid}, {"kept_bytes", kept}, {"dropped_bytes", dropped}};
  return call.answer(document, format("stopped the daemon (pid {}): {} kept, {} given back\n", pid,
                                      format_bytes(kept), format_bytes(dropped)));
}

}  // namespace

Verb stop_verb() {
  auto drop = std::make_shared<bool>(false);
  Verb verb{.name = "stop", .summary = "end the daemon, and tell what becomes of the memory"};
  verb.description =
      "Without --drop the memory is kept wherever something keeps it: a supervisor, or readers "
      "that "
      "are attached. With --drop it is given back. The answer says how much of each.";
  verb.examples = {{"weightcache stop --drop", "end it and give all memory back"}};
  verb.options.flag("--drop", *drop, "Give the memory back");
  verb.run = [drop](Call& call) { return run(*drop, call); };
  return verb;
}

}  // namespace wc::cli
