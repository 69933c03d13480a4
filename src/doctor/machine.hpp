// Where the doctor looks, and the whole examination. Takes a second or less; starts no thread.
#pragma once

#include <string>

#include "base/result.hpp"
#include "client/connection.hpp"
#include "doctor/diagnosis.hpp"

namespace wc::doctor {

struct Machine {
  std::string root = {};     // stands before /proc, /sys and /dev; a test gives a folder of its own
  std::string libcuda = {};  // empty: as the library itself opens it
  std::string libnvml = {};
  client::ConnectOptions connect = {};  // how the daemon would be reached
};

/// Never fails: what can't be found out is a finding too. Wakes the CUDA driver (100 to 250 ms) and
/// makes no context.
[[nodiscard]] Diagnosis examine(const Machine& machine);

/// Names in the folder, sorted; none where it can't be read.
[[nodiscard]] std::vector<std::string> names_in(const std::string& folder);

/// The first line of a small file; empty where there is none.
[[nodiscard]] std::string line_of(const std::string& path);

}  // namespace wc::doctor
