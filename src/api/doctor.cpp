// What this machine can do, as findings.
#include <utility>

#include "api/guard.hpp"
#include "api/handles.hpp"
#include "api/structs.hpp"
#include "base/units.hpp"
#include "doctor/machine.hpp"

struct wc_diagnosis {
  wc::doctor::Diagnosis inner;
};

namespace wc::api {
namespace {

static_assert(static_cast<int>(doctor::Severity::ok) == WC_SEVERITY_OK);
static_assert(static_cast<int>(doctor::Severity::warning) == WC_SEVERITY_WARNING);
static_assert(static_cast<int>(doctor::Severity::problem) == WC_SEVERITY_PROBLEM);

// -1: not to be told.
std::int32_t flag_or_unknown(const std::optional<bool>& flag) {
  return flag ? static_cast<std::int32_t>(*flag) : -1;
}

wc_finding finding_of(const doctor::Finding& finding) {
  wc_finding out{};
  out.area = finding.area.c_str();
  out.check = finding.check.c_str();
  out.device = finding.device.c_str();
  out.severity = static_cast<std::int32_t>(finding.severity);
  out.text = finding.text.c_str();
  out.advice = finding.advice.c_str();
  return out;
}

wc_gpu_info gpu_info_of(const doctor::GpuFacts& gpu) {
  wc_gpu_info out{};
  out.device = gpu.uuid.c_str();
  out.name = gpu.name.c_str();
  out.ordinal = gpu.ordinal;
  out.persistence_mode = flag_or_unknown(gpu.persistence_mode);
  out.mig_mode = flag_or_unknown(gpu.mig_mode);
  out.used_known = gpu.used_known ? 1 : 0;
  out.total_bytes = gpu.total_bytes;
  out.used_bytes = gpu.used_bytes;
  return out;
}

}  // namespace
}  // namespace wc::api

using wc::Result;
using wc::api::give_struct;
using wc::api::guarded;
using wc::api::required;

extern "C" {

const char* wc_severity_name(int severity) {
  if (severity < WC_SEVERITY_OK || severity > WC_SEVERITY_PROBLEM) return "unknown";
  return name_of(static_cast<wc::doctor::Severity>(severity)).data();
}

int wc_doctor(const wc_connect_options* options, wc_diagnosis** out) {
  return guarded([&]() -> Result<> {
    TRY(required(out, "out"));
    *out = nullptr;
    wc::doctor::Machine machine;
    machine.connect = TRY(wc::api::connect_options_of(options));
    *out = new wc_diagnosis{wc::doctor::examine(machine)};
    return {};
  });
}

size_t wc_diagnosis_count(const wc_diagnosis* diagnosis) {
  return diagnosis == nullptr ? 0 : diagnosis->inner.findings.size();
}

int wc_diagnosis_at(const wc_diagnosis* diagnosis, size_t index, wc_finding* out) {
  return guarded([&]() -> Result<> {
    TRY(required(diagnosis, "diagnosis"));
    const auto& findings = diagnosis->inner.findings;
    if (index >= findings.size())
      return wc::fail(wc::Code::invalid_argument, "there is no finding {}: there are {}",
                      wc::format_count(index), wc::format_count(findings.size()));
    return give_struct(out, wc::api::finding_of(findings[index]), "wc_finding");
  });
}

size_t wc_diagnosis_gpu_count(const wc_diagnosis* diagnosis) {
  return diagnosis == nullptr ? 0 : diagnosis->inner.gpus.size();
}

int wc_diagnosis_gpu_at(const wc_diagnosis* diagnosis, size_t index, wc_gpu_info* out) {
  return guarded([&]() -> Result<> {
    TRY(required(diagnosis, "diagnosis"));
    const auto& gpus = diagnosis->inner.gpus;
    if (index >= gpus.size())
      return wc::fail(wc::Code::invalid_argument, "there is no GPU {}: there are {}",
                      wc::format_count(index), wc::format_count(gpus.size()));
    return give_struct(out, wc::api::gpu_info_of(gpus[index]), "wc_gpu_info");
  });
}

void wc_diagnosis_free(wc_diagnosis* diagnosis) { delete diagnosis; }

}  // extern "C"
