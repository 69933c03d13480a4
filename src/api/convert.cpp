#include "api/convert.hpp"

namespace wc::api {

static_assert(static_cast<int>(wire::fb::State::loading) == WC_LOADING);
static_assert(static_cast<int>(wire::fb::State::published) == WC_PUBLISHED);
static_assert(static_cast<int>(wire::fb::State::draining) == WC_DRAINING);
static_assert(static_cast<int>(wire::fb::State::gone) == WC_GONE);
static_assert(static_cast<int>(wire::fb::State::failed) == WC_FAILED);
static_assert(static_cast<int>(wire::fb::Outcome::loaded) == WC_LOADED);
static_assert(static_cast<int>(wire::fb::Outcome::already_resident) == WC_ALREADY_RESIDENT);
static_assert(static_cast<int>(wire::fb::Outcome::prepared) == WC_PREPARED);

wc_entry_info view_of(const wire::fb::EntryInfoT& entry) {
  wc_entry_info info{};
  info.struct_size = sizeof info;
  info.name = entry.name.c_str();
  info.form = entry.form.c_str();
  info.fingerprint = entry.fingerprint.c_str();
  info.device = entry.device.c_str();
  info.source = entry.source.c_str();
  info.rank = entry.rank;
  info.world = entry.world;
  info.generation = entry.generation;
  info.state = static_cast<std::int32_t>(entry.state);
  info.transport = entry.transport;
  info.tensors = entry.tensors;
  info.bytes = entry.bytes;
  info.segments = entry.segments;
  info.leases = entry.leases;
  info.pinned = entry.pinned ? 1 : 0;
  info.done_bytes = entry.done_bytes;
  info.total_bytes = entry.total_bytes;
  info.since_unix_ns = entry.since_unix_ns;
  info.address = entry.address;
  return info;
}

wc_lease_info view_of(const wire::fb::LeaseInfoT& lease) {
  wc_lease_info info{};
  info.struct_size = sizeof info;
  info.lease = lease.lease;
  info.name = lease.entry_name.c_str();
  info.form = lease.form.c_str();
  info.device = lease.device.c_str();
  info.generation = lease.generation;
  info.bytes = lease.bytes;
  info.rank = lease.rank;
  info.label = lease.label.c_str();
  info.command = lease.command.c_str();
  info.container = lease.container.c_str();
  info.pid = lease.pid;
  info.uid = lease.uid;
  info.since_unix_ns = lease.since_unix_ns;
  return info;
}

wc_device_status view_of(const wire::fb::DeviceStatusT& device) {
  wc_device_status status{};
  status.struct_size = sizeof status;
  status.device = device.device.c_str();
  status.bytes = device.bytes;
  status.budget_bytes = device.budget_bytes;
  status.loading_bytes = device.loading_bytes;
  status.releasing_bytes = device.releasing_bytes;
  return status;
}

wc_status_info view_of(const wire::fb::StatusReportT& report) {
  wc_status_info status{};
  status.struct_size = sizeof status;
  status.epoch = report.epoch.c_str();
  status.software = report.software.c_str();
  status.pid = report.pid;
  status.uptime_ns = report.uptime_ns;
  status.rss_bytes = report.rss_bytes;
  status.entries = report.entries;
  status.leases = report.leases;
  status.connections = report.connections;
  status.devices = report.devices.size();
  return status;
}

}  // namespace wc::api
