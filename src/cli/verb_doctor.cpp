#include <memory>
#include <vector>

#include "base/units.hpp"
#include "cli/call.hpp"
#include "cli/text.hpp"
#include "cli/verb.hpp"

namespace wc::cli {
namespace {

struct Examined {
  std::vector<wc_finding> findings;
  std::vector<wc_gpu_info> gpus;

  [[nodiscard]] std::size_t count(std::int32_t severity) const {
    std::size_t found = 0;
    for (const auto& finding : findings) found += finding.severity == severity ? 1 : 0;
    return found;
  }
};

Json known_flag(std::int32_t flag) { return flag < 0 ? Json(nullptr) : Json(flag != 0); }

Json doctor_document(const Examined& examined) {
  Json document = {{"warnings", examined.count(WC_SEVERITY_WARNING)},
                   {"problems", examined.count(WC_SEVERITY_PROBLEM)},
                   {"findings", Json::array()},
                   {"devices", Json::array()}};
  for (const auto& finding : examined.findings) {
    document["findings"].push_back({{"area", finding.area},
                                    {"check", finding.check},
                                    {"severity", wc_severity_name(finding.severity)},
                                    {"device", finding.device},
                                    {"text", finding.text},
                                    {"advice", finding.advice}});
  }
  for (const auto& gpu : examined.gpus) {
    document["devices"].push_back(
        {{"device", gpu.device},
         {"name", gpu.name},
         {"ordinal", gpu.ordinal < 0 ? Json(nullptr) : Json(gpu.ordinal)},
         {"total_bytes", gpu.total_bytes},
         {"used_bytes", gpu.used_known == 0 ? Json(nullptr) : Json(gpu.used_bytes)},
         {"persistence_mode", known_flag(gpu.persistence_mode)},
         {"mig_mode", known_flag(gpu.mig_mode)}});
  }
  return document;
}

Colour severity_colour(std::int32_t severity) {
  if (severity == WC_SEVERITY_OK) return Colour::green;
  return severity == WC_SEVERITY_WARNING ? Colour::yellow : Colour::red;
}

std::string doctor_text(const Examined& examined, const Terminal& terminal) {
  constexpr std::size_t kIndent = 10;  // "  problem "
  constexpr std::size_t kWide = 100;
  const std::size_t columns = terminal.columns == 0 ? kWide : terminal.columns;
  std::string text;
  std::string area;
  for (const auto& finding : examined.findings) {
    if (area != finding.area) {
      area = finding.area;
      text += painted(printable(area), Colour::bold, terminal) + '\n';
    }
    const std::string label = wc_severity_name(finding.severity);
    const std::string device = finding.device;
    const std::string said = device.empty() ? finding.text : device + ": " + finding.text;
    text += "  " + painted(label, severity_colour(finding.severity), terminal);
    text.append(kIndent - 2 - label.size(), ' ');
    text += wrapped(printable(said), columns, kIndent) + '\n';
    const std::string advice = finding.advice;
    if (advice.empty()) continue;
    text.append(kIndent, ' ');
    text += "-> " + wrapped(printable(advice), columns, kIndent + 3) + '\n';
  }
  return text + format("{}, {}\n", counted(examined.count(WC_SEVERITY_PROBLEM), "problem"),
                       counted(examined.count(WC_SEVERITY_WARNING), "warning"));
}

Result<> run_doctor(Call& call) {
  const std::string label = "weightcache doctor";
  wc_connect_options options = WC_CONNECT_OPTIONS_INIT;
  const std::string& socket = call.common().socket;
  options.socket = socket.empty() ? nullptr : socket.c_str();
  options.label = label.c_str();
  const auto diagnosis =
      TRY(made<Diagnosis>([&](wc_diagnosis** out) { return wc_doctor(&options, out); }));
  Examined examined;
  for (std::size_t at = 0; at < wc_diagnosis_count(diagnosis.get()); ++at) {
    auto& finding = examined.findings.emplace_back(sized<wc_finding>());
    TRY(check(wc_diagnosis_at(diagnosis.get(), at, &finding)));
  }
  for (std::size_t at = 0; at < wc_diagnosis_gpu_count(diagnosis.get()); ++at) {
    auto& gpu = examined.gpus.emplace_back(sized<wc_gpu_info>());
    TRY(check(wc_diagnosis_gpu_at(diagnosis.get(), at, &gpu)));
  }
  const Json document = doctor_document(examined);
  const std::string text = doctor_text(examined, call.out());
  const std::size_t problems = examined.count(WC_SEVERITY_PROBLEM);
  if (problems == 0) return call.answer(document, text);
  return call.answer_with(
      document, text,
      Error{Code::unsupported, format("{} found here", counted(problems, "problem")), {}});
}

}  // namespace

Verb doctor_verb() {
  Verb verb{.name = "doctor", .summary = "tell what this machine can do, and what to change"};
  verb.description =
      "Looks at the machine as this process sees it: the NVIDIA driver and its GPUs by UUID, MIG "
      "and "
      "persistence mode, which transports work and why not, limits of descriptors and locked "
      "memory, "
      "control groups, huge pages, io_uring, memfds, traps of containers, and whether a daemon "
      "answers. Where it can it tries the very thing that a load or an attach would do.\n\n"
      "Each finding is ok, a warning (it costs speed, or will surprise) or a problem (something "
      "does "
      "not work), with what to change behind an arrow. With a problem it ends with status 1 and "
      "the "
      "code unsupported. It needs no daemon and changes nothing.";
  verb.examples = {{"weightcache doctor", "before the first load, and in every new container"},
                   {"weightcache doctor --json | jq '.findings[] | select(.severity != \"ok\")'",
                    "only what should be changed"}};
  verb.run = [](Call& call) { return run_doctor(call); };
  return verb;
}

}  // namespace wc::cli
