#include <csignal>
#include <memory>

#include "cli/call.hpp"
#include "cli/detach.hpp"
#include "cli/serve.hpp"
#include "cli/text.hpp"
#include "cli/verb.hpp"

namespace wc::cli {
namespace {

struct Asked {
  ServeRequest request;
  bool detach = false;
};

Json document_of(const Service& service) {
  return {{"pid", service.pid}, {"socket", service.socket}, {"epoch", service.epoch}};
}

Result<> serve_here(const Asked& asked, Call& call) {
  Result<> told;
  const auto ready = [&](const Service& service) {
    told = call.answer(document_of(service), format("serving on {} (pid {}); Ctrl-C stops it\n",
                                                    printable(service.socket), service.pid));
  };
  TRY(serve_until_stopped(asked.request, ready));
  return told;
}

Result<> serve_detached(const Asked& asked, Call& call) {
  TRY(check_request(asked.request));
  const std::string& socket = asked.request.socket;
  const Fd log = TRY(open_log(socket));
  const std::string said = TRY(run_detached(log, [&](const Announce& announce) {
    return serve_until_stopped(asked.request, [&](const Service& service) {
      // Whoever wanted this daemon gave up on it: nobody would know of it.
      if (!announce(dumped(document_of(service)))) (void)std::raise(SIGTERM);
    });
  }));
  Json document = Json::parse(said, nullptr, false);
  if (!document.is_object()) return fail(Code::internal, "the daemon said \"{}\"", said);
  document["log"] = log_path(socket);
  return call.answer(document, format("serving in the background: pid {}, socket {}, log {}\n",
                                      document.value("pid", std::int64_t{0}), printable(socket),
                                      printable(log_path(socket))));
}

}  // namespace

Verb serve_verb() {
  auto asked = std::make_shared<Asked>();
  Verb verb{.name = "serve", .summary = "run the daemon that keeps the memory"};
  verb.description =
      "The daemon keeps what loaders fill and hands it to readers. It never reads a checkpoint and "
      "never touches a GPU itself. One daemon serves a socket; a second one is refused.\n\n"
      "In the foreground it logs to stderr and ends with Ctrl-C. With --detach it goes into the "
      "background, and the command returns when it answers; its log is the file \"log\" beside the "
      "socket.";
  verb.examples = {
      {"weightcache serve --detach", "in the background"},
      {"weightcache serve --budget cpu=64GiB", "at most 64 GiB of host memory"},
      {"weightcache serve --socket /run/weights/socket --group ml",
       "a socket that a group may use"},
      {"weightcache serve --allow-read @users --allow-publish trainer",
       "readers of a group, and one user who publishes"},
  };
  verb.options.flag("--detach", asked->detach, "Go into the background as soon as it answers");
  verb.options.text(
      "--group", "GROUP", asked->request.group,
      "A group whose users may read, beside the daemon's own user; nobody else can reach "
      "the socket");
  verb.options.texts("--allow-read", "WHO", asked->request.allow_read,
                     "A user, or @GROUP, that may attach and look; may be given again");
  verb.options.texts("--allow-publish", "WHO", asked->request.allow_publish,
                     "A user, or @GROUP, that may publish too; may be given again");
  verb.options.texts("--budget", "DEVICE=SIZE", asked->request.budgets,
                     "How much it may keep on a device, like cpu=64GiB; may be given again for "
                     "another one (default: of cpu, nine tenths of what the machine has and the "
                     "control groups allow; of a GPU, no limit but its own). Where it is reached, "
                     "entries that nobody uses make room, the least recently used first");
  verb.options.duration("--keep-after-death", asked->request.keep_after_death,
                        "How long an entry makes no room for others after a reader of it died "
                        "instead of detaching (default: 10m)");
  verb.options.choice("--log-level", {"debug", "info", "warning", "error"},
                      asked->request.log_level, "What is logged (default: info)");
  verb.run = [asked](Call& call) -> Result<> {
    asked->request.socket = TRY(serving_socket(call.common().socket));
    return asked->detach ? serve_detached(*asked, call) : serve_here(*asked, call);
  };
  return verb;
}

}  // namespace wc::cli
