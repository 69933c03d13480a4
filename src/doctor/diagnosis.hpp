// What was found out about a machine: findings for people and scripts, and the GPUs as plain facts.
// Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace wc::doctor {

/// The numbers are those of the C ABI. A warning costs speed or will surprise; a problem means that
/// something which this machine should do does not work.
enum class Severity : std::uint8_t { ok = 0, warning = 1, problem = 2 };

[[nodiscard]] std::string_view name_of(Severity severity);

struct Finding {
  std::string area;         // "driver", "gpu", "transport", "limits", "memory", "kernel", ...
  std::string check;        // "persistence_mode": stable, for scripts
  std::string device = {};  // the UUID that it is about; empty: the machine
  Severity severity = Severity::ok;
  std::string text = {};    // what is so
  std::string advice = {};  // what to change; empty: nothing
};

struct GpuFacts {
  std::string uuid;
  std::string name;
  int ordinal = -1;               // this process's; -1: hidden from it
  std::uint64_t total_bytes = 0;  // 0: unknown
  std::uint64_t used_bytes = 0;   // by everybody; only where `used_known`
  bool used_known = false;
  std::optional<bool> persistence_mode = {};
  std::optional<bool> mig_mode = {};
};

struct Diagnosis {
  std::vector<Finding> findings;
  std::vector<GpuFacts> gpus;

  void ok(std::string area, std::string check, std::string text, std::string device = {}) {
    findings.push_back({.area = std::move(area),
                        .check = std::move(check),
                        .device = std::move(device),
                        .text = std::move(text)});
  }
  [[nodiscard]] std::size_t count(Severity severity) const;
};

}  // namespace wc::doctor
