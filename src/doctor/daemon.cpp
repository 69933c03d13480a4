#include "doctor/daemon.hpp"

#include <utility>

namespace wc::doctor {
namespace {

std::string advice_for(const Error& error) {
  switch (error.code) {
    case Code::disconnected:
      return "start one: weightcache serve --detach; or say where it is: --socket, "
             "$WEIGHTCACHE_SOCKET (in a container: mount its directory)";
    case Code::denied:
      return "the socket's directory belongs to the daemon's user, who alone can write it (0700; "
             "0750 with serve --group); connect as that user or as a member of that group";
    case Code::version:
      return "install the same release of weightcache on both sides";
    case Code::timed_out:
      return "the daemon is stopped or hangs: look at its log, beside the socket";
    default:
      return "look at what listens there";
  }
}

}  // namespace

DaemonFacts gather_daemon(const Machine& machine) {
  DaemonFacts facts;
  facts.paths = client::sockets_to_try(machine.connect.socket, machine.connect.environment);
  const auto connection = client::Connection::connect(machine.connect);
  if (connection) {
    facts.daemon = (*connection)->daemon();
  } else {
    facts.daemon = Failure(connection.error());
  }
  return facts;
}

void judge_daemon(const DaemonFacts& facts, Diagnosis& diagnosis) {
  if (facts.daemon) {
    diagnosis.ok("daemon", "reachable",
                 format("{} answers on \"{}\" (pid {}, protocol {})", facts.daemon->software,
                        facts.daemon->socket, facts.daemon->pid, facts.daemon->protocol));
    return;
  }
  const Error& error = facts.daemon.error();
  diagnosis.findings.push_back(
      {.area = "daemon",
       .check = "reachable",
       .severity = error.code == Code::disconnected ? Severity::warning : Severity::problem,
       .text = error.message,
       .advice = advice_for(error)});
}

}  // namespace wc::doctor
