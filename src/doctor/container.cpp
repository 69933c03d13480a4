#include "doctor/container.hpp"

#include <cstdint>
#include <cstdlib>
#include <sstream>

#include <unistd.h>

namespace wc::doctor {
namespace {

bool there(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

std::string kind_of_container(const std::string& root) {
  if (there(root + "/run/.containerenv")) return "podman";
  if (there(root + "/.dockerenv")) return "docker";
  if (const char* said = std::getenv("container"); said != nullptr && *said != '\0') return said;
  return std::getenv("KUBERNETES_SERVICE_HOST") != nullptr ? "kubernetes" : "";
}

struct UidMap {
  std::uint64_t inside = 0;
  std::uint64_t outside = 0;
  std::uint64_t count = 0;
};

// The map of a machine's first user namespace is all users onto themselves.
bool is_whole(const UidMap& map) {
  constexpr std::uint64_t kAll = 0xFFFFFFFF;
  return map.inside == 0 && map.outside == 0 && map.count == kAll;
}

void judge_users(const std::string& line, Diagnosis& diagnosis) {
  UidMap map;
  std::istringstream words(line);
  if (!(words >> map.inside >> map.outside >> map.count) || is_whole(map)) return;
  diagnosis.findings.push_back(
      {.area = "container",
       .check = "user_namespace",
       .severity = Severity::warning,
       .text = format("this process is in a user namespace: user {} here is user {} outside, and a "
                      "user that is not mapped shows as 65534",
                      map.inside, map.outside),
       .advice =
           "run daemon and engines in the same user namespace; across two of them, who a peer "
           "is can't be told, and the connection is refused"});
}

}  // namespace

ContainerFacts gather_container(const Machine& machine) {
  return {.kind = kind_of_container(machine.root),
          .uid_map = line_of(machine.root + "/proc/self/uid_map")};
}

void judge_container(const ContainerFacts& facts, Diagnosis& diagnosis) {
  if (!facts.kind.empty()) {
    diagnosis.ok("container", "kind",
                 format("this is a container ({}): mount the directory of the daemon's socket into "
                        "it, never the socket's file, which a new daemon replaces",
                        facts.kind));
  }
  judge_users(facts.uid_map, diagnosis);
}

}  // namespace wc::doctor
