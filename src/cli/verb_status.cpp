#include <chrono>
#include <memory>
#include <vector>

#include "base/units.hpp"
#include "cli/call.hpp"
#include "cli/table.hpp"
#include "cli/text.hpp"
#include "cli/verb.hpp"

namespace wc::cli {
namespace {

Json document_of(const wc_status_info& status, const std::vector<wc_device_status>& devices,
                 const wc_daemon_info& daemon) {
  Json document = {{"epoch", or_empty(status.epoch)},
                   {"pid", status.pid},
                   {"uptime_s", seconds_of(status.uptime_ns)},
                   {"rss_bytes", status.rss_bytes},
                   {"entries", status.entries},
                   {"leases", status.leases},
                   {"connections", status.connections},
                   {"software", or_empty(status.software)},
                   {"protocol", daemon.protocol},
                   {"socket", or_empty(daemon.socket)},
                   {"devices", Json::array()}};
  for (const auto& device : devices) {
    document["devices"].push_back({{"device", or_empty(device.device)},
                                   {"bytes", device.bytes},
                                   {"budget_bytes", device.budget_bytes},
                                   {"loading_bytes", device.loading_bytes},
                                   {"releasing_bytes", device.releasing_bytes},
                                   {"total_bytes", device.total_bytes},
                                   {"used_bytes", device.used_bytes}});
  }
  return document;
}

// By everybody, of all; "-" where it can't be told.
std::string device_use(const wc_device_status& device) {
  if (device.total_bytes == 0) return "-";
  return format("{} of {}", format_bytes(device.used_bytes), format_bytes(device.total_bytes));
}

std::string table_of(const std::vector<wc_device_status>& devices, const Terminal& terminal) {
  Table table({{.title = "DEVICE", .shrinks = true},
               {.title = "RESIDENT", .align = Align::right},
               {.title = "LOADING", .align = Align::right, .drops = true},
               {.title = "RELEASING", .align = Align::right, .drops = true},
               {.title = "BUDGET", .align = Align::right},
               {.title = "FREE", .align = Align::right},
               {.title = "DEVICE USED", .align = Align::right, .drops = true}});
  for (const auto& device : devices) {
    const std::uint64_t used = device.bytes + device.loading_bytes + device.releasing_bytes;
    const std::uint64_t budget = device.budget_bytes;  // 0: no limit but the device's own
    table.add({{or_empty(device.device)},
               {format_bytes(device.bytes)},
               {format_bytes(device.loading_bytes)},
               {format_bytes(device.releasing_bytes)},
               {budget == 0 ? "no limit" : format_bytes(budget)},
               {budget == 0 ? "-" : format_bytes(budget > used ? budget - used : 0)},
               {device_use(device)}});
  }
  return table.render(terminal);
}

std::string text_of(const wc_status_info& status, const std::vector<wc_device_status>& devices,
                    const wc_daemon_info& daemon, const Terminal& terminal) {
  std::string text = format(
      "daemon   {}, pid {}, up {}\nsocket   {}\nepoch    {}\nmemory   {} of its own\n"
      "holds    {} {}, {}, {}\n",
      printable(or_empty(status.software)), status.pid,
      format_duration(std::chrono::nanoseconds(status.uptime_ns)),
      printable(or_empty(daemon.socket)), printable(or_empty(status.epoch)),
      format_bytes(status.rss_bytes), format_count(status.entries),
      status.entries == 1 ? "entry" : "entries", counted(status.leases, "lease"),
      counted(status.connections, "connection"));
  if (!devices.empty()) text += '\n' + table_of(devices, terminal);
  return text;
}

Result<> run(Call& call) {
  const auto connection = TRY(call.connect());
  auto daemon = sized<wc_daemon_info>();
  TRY(check(wc_connection_daemon(connection.get(), &daemon)));
  const auto status =
      TRY(made<Status>([&](wc_status** out) { return wc_status_get(connection.get(), out); }));
  auto info = sized<wc_status_info>();
  TRY(check(wc_status_read(status.get(), &info)));
  std::vector<wc_device_status> devices;
  for (std::size_t at = 0; at < info.devices; ++at) {
    auto& device = devices.emplace_back(sized<wc_device_status>());
    TRY(check(wc_status_device_at(status.get(), at, &device)));
  }
  return call.answer(document_of(info, devices, daemon),
                     text_of(info, devices, daemon, call.out()));
}

}  // namespace

Verb status_verb() {
  Verb verb{.name = "status", .summary = "tell how the daemon is, and what each device holds"};
  verb.description =
      "The daemon's process, socket and own memory, and for each device how much is resident and "
      "how much the budget allows; of a GPU also how much of it everybody uses, where NVIDIA's "
      "management library can be asked.";
  verb.examples = {{"weightcache status", "for people"},
                   {"weightcache status --json | jq .devices", "for scripts"}};
  verb.run = [](Call& call) { return run(call); };
  return verb;
}

}  // namespace wc::cli
