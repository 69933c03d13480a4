// What an operator asks: who holds what, how the daemon is, and what is to go or to stay.
#include <algorithm>
#include <utility>

#include "api/convert.hpp"
#include "api/guard.hpp"
#include "api/handles.hpp"
#include "api/progress.hpp"
#include "api/selector.hpp"
#include "api/structs.hpp"
#include "base/units.hpp"
#include "client/operations.hpp"
#include "memory/cuda/nvml.hpp"

struct wc_lease_list {
  std::vector<wc::wire::fb::LeaseInfoT> leases;
};

struct wc_status {
  wc::wire::fb::StatusReportT report;
  std::vector<wc::memory::cuda::NvmlGpu> gpus;  // where the daemon keeps something on one
};

namespace wc::api {
namespace {

Result<> drain(wc_connection& connection, const Wanted& wanted, const wc_wait_options& options) {
  ProgressTeller progress(options.progress, options.user);
  client::WaitOptions waiting;
  if (options.wait_ns != 0) waiting.limit = duration_of(options.wait_ns);
  waiting.on_progress = progress.waiting();
  waiting.cancellation = inner(options.cancellation);
  const auto drained = TRY(with_selector(wanted, [&](const auto& selector) {
    return client::drain(*connection.session, selector, waiting);
  }));
  (void)drained;
  return {};
}

// The daemon opens no library of NVIDIA's; whoever asks it can ask that as well.
std::vector<memory::cuda::NvmlGpu> gpus_of(const wire::fb::StatusReportT& report) {
  const auto is_gpu = [](const auto& device) { return device->device != "cpu"; };
  if (std::ranges::none_of(report.devices, is_gpu)) return {};
  auto told = memory::cuda::ask_nvml();
  return told ? std::move(told->gpus) : std::vector<memory::cuda::NvmlGpu>();
}

wc_device_status device_status_of(const wc_status& status, const wire::fb::DeviceStatusT& device) {
  wc_device_status out = view_of(device);
  const auto gpu = std::ranges::find(status.gpus, device.device, &memory::cuda::NvmlGpu::uuid);
  if (gpu == status.gpus.end()) return out;
  out.total_bytes = gpu->total_bytes;
  out.used_bytes = gpu->used_bytes;
  return out;
}

Result<> end_drain(wc_connection& connection, const Wanted& wanted) {
  const auto ended = TRY(with_selector(wanted, [&](const auto& selector) {
    return client::end_drain(*connection.session, selector);
  }));
  (void)ended;
  return {};
}

}  // namespace
}  // namespace wc::api

using wc::Code;
using wc::Result;
using wc::api::give_struct;
using wc::api::guarded;
using wc::api::required;

extern "C" {

int wc_leases(wc_connection* connection, const wc_selector* selector, wc_lease_list** out) {
  return guarded([&]() -> Result<> {
    TRY(required(out, "out"));
    *out = nullptr;
    TRY(required(connection, "connection"));
    const auto wanted = TRY(wc::api::wanted_or_all(selector, *connection->devices));
    auto leases = TRY(wc::api::with_selector(wanted, [&](const auto& selected) {
      return wc::client::list_leases(*connection->session, selected);
    }));
    *out = new wc_lease_list{std::move(leases)};
    return {};
  });
}

size_t wc_lease_list_count(const wc_lease_list* list) {
  return list == nullptr ? 0 : list->leases.size();
}

int wc_lease_list_at(const wc_lease_list* list, size_t index, wc_lease_info* out) {
  return guarded([&]() -> Result<> {
    TRY(required(list, "list"));
    if (index >= list->leases.size())
      return wc::fail(Code::invalid_argument, "there is no lease {}: the list has {}",
                      wc::format_count(index), wc::format_count(list->leases.size()));
    return give_struct(out, wc::api::view_of(list->leases[index]), "wc_lease_info");
  });
}

void wc_lease_list_free(wc_lease_list* list) { delete list; }

int wc_status_get(wc_connection* connection, wc_status** out) {
  return guarded([&]() -> Result<> {
    TRY(required(out, "out"));
    *out = nullptr;
    TRY(required(connection, "connection"));
    auto report = TRY(wc::client::status(*connection->session));
    std::erase(report.devices, nullptr);
    auto gpus = wc::api::gpus_of(report);
    *out = new wc_status{std::move(report), std::move(gpus)};
    return {};
  });
}

int wc_status_read(const wc_status* status, wc_status_info* out) {
  return guarded([&]() -> Result<> {
    TRY(required(status, "status"));
    return give_struct(out, wc::api::view_of(status->report), "wc_status_info");
  });
}

int wc_status_device_at(const wc_status* status, size_t index, wc_device_status* out) {
  return guarded([&]() -> Result<> {
    TRY(required(status, "status"));
    const auto& devices = status->report.devices;
    if (index >= devices.size())
      return wc::fail(Code::invalid_argument, "there is no device {}: the daemon has {}",
                      wc::format_count(index), devices.size());
    return give_struct(out, wc::api::device_status_of(*status, *devices[index]),
                       "wc_device_status");
  });
}

void wc_status_free(wc_status* status) { delete status; }

int wc_evict(wc_connection* connection, const wc_selector* selector, int force, wc_evicted* out) {
  return guarded([&]() -> Result<> {
    TRY(required(connection, "connection"));
    const auto wanted = TRY(wc::api::wanted_of(selector, *connection->devices));
    const auto evicted = TRY(wc::api::with_selector(wanted, [&](const auto& selected) {
      return wc::client::evict(*connection->session, selected, force != 0);
    }));
    wc_evicted numbers{};
    numbers.entries = evicted.entries;
    numbers.bytes = evicted.bytes;
    numbers.leases = evicted.leases;
    if (out == nullptr) return {};
    return give_struct(out, numbers, "wc_evicted");
  });
}

int wc_pin(wc_connection* connection, const wc_selector* selector, int pinned) {
  return guarded([&]() -> Result<> {
    TRY(required(connection, "connection"));
    const auto wanted = TRY(wc::api::wanted_of(selector, *connection->devices));
    const auto entry = TRY(wc::api::with_selector(wanted, [&](const auto& selected) {
      return wc::client::pin(*connection->session, selected, pinned != 0);
    }));
    (void)entry;
    return {};
  });
}

int wc_drain(wc_connection* connection, const wc_selector* selector, int undo,
             const wc_wait_options* options) {
  return guarded([&]() -> Result<> {
    TRY(required(connection, "connection"));
    const auto known = TRY(wc::api::take_struct_or_default(options, "wc_wait_options"));
    const auto wanted = TRY(wc::api::wanted_of(selector, *connection->devices));
    return undo != 0 ? wc::api::end_drain(*connection, wanted)
                     : wc::api::drain(*connection, wanted, known);
  });
}

int wc_stop(wc_connection* connection, int drop, uint64_t* kept_bytes, uint64_t* dropped_bytes) {
  return guarded([&]() -> Result<> {
    TRY(required(connection, "connection"));
    const auto stopping = TRY(wc::client::stop(*connection->session, drop != 0));
    if (kept_bytes != nullptr) *kept_bytes = stopping.kept_bytes;
    if (dropped_bytes != nullptr) *dropped_bytes = stopping.dropped_bytes;
    return {};
  });
}

}  // extern "C"
