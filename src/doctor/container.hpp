// Whether this process lives in a container, and what that changes.
#pragma once

#include "doctor/machine.hpp"

namespace wc::doctor {

struct ContainerFacts {
  std::string kind = {};     // "docker", "podman", "lxc"; empty: none, as far as it shows
  std::string uid_map = {};  // first line of /proc/self/uid_map
};

[[nodiscard]] ContainerFacts gather_container(const Machine& machine);
void judge_container(const ContainerFacts& facts, Diagnosis& diagnosis);

}  // namespace wc::doctor
