#include "doctor/machine.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "doctor/container.hpp"
#include "doctor/daemon.hpp"
#include "doctor/gpus.hpp"
#include "doctor/kernel.hpp"
#include "doctor/limits.hpp"
#include "doctor/memory.hpp"

namespace wc::doctor {

std::string_view name_of(Severity severity) {
  switch (severity) {
    case Severity::ok:
      return "ok";
    case Severity::warning:
      return "warning";
    case Severity::problem:
      break;
  }
  return "problem";
}

std::size_t Diagnosis::count(Severity severity) const {
  return static_cast<std::size_t>(std::ranges::count(findings, severity, &Finding::severity));
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

std::string line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

Diagnosis examine(const Machine& machine) {
  Diagnosis diagnosis;
  judge_gpus(gather_gpus(machine), diagnosis);
  judge_limits(gather_limits(machine), diagnosis);
  judge_memory(gather_memory(machine), diagnosis);
  judge_kernel(gather_kernel(machine), diagnosis);
  judge_container(gather_container(machine), diagnosis);
  judge_daemon(gather_daemon(machine), diagnosis);
  return diagnosis;
}

}  // namespace wc::doctor
