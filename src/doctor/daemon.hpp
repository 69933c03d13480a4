// Whether a daemon can be reached, and what its socket's directory is like.
#pragma once

#include <vector>

#include "client/connection.hpp"
#include "doctor/machine.hpp"

namespace wc::doctor {

struct DaemonFacts {
  std::vector<std::string> paths = {};  // in the order in which a client tries them
  Result<client::DaemonInfo> daemon = client::DaemonInfo{};
};

[[nodiscard]] DaemonFacts gather_daemon(const Machine& machine);
void judge_daemon(const DaemonFacts& facts, Diagnosis& diagnosis);

}  // namespace wc::doctor
