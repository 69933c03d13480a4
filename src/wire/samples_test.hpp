// One message of each type with every field filled, for the tests of this folder and as the seeds
// of the fuzz target's corpus.
#pragma once

#include <vector>

#include "wire/codec.hpp"

namespace wc::wire::samples {

inline fb::EntryInfoT entry() {
  fb::EntryInfoT entry;
  entry.name = "org/llama-3-8b";
  entry.form = "raw";
  entry.rank = 1;
  entry.world = 2;
  entry.fingerprint = "00112233445566778899aabbccddeeff";
  entry.generation = 7;
  entry.state = fb::State::draining;
  entry.device = "GPU-6f1c2d34-0000-0000-0000-000000000000";
  entry.transport = 2;
  entry.tensors = 291;
  entry.bytes = 16'060'522'496;
  entry.segments = 3;
  entry.leases = 4;
  entry.pinned = true;
  entry.done_bytes = 5;
  entry.total_bytes = 6;
  entry.source = "/models/llama-3-8b";
  entry.since_unix_ns = 1'700'000'000'000'000'000;
  entry.address = std::uint64_t{1} << 44;
  return entry;
}

inline fb::SelectorT selector() {
  fb::SelectorT selector;
  selector.name = "org/llama-3-8b";
  selector.generation = 7;
  selector.fingerprint = "0011";
  selector.aliases = {"receipt:1", "sha256:2"};
  selector.form = "raw";
  selector.device = "cpu";
  selector.rank = 1;
  selector.world = 2;
  return selector;
}

inline fb::SegmentInfoT segment(bool ipc) {
  fb::SegmentInfoT segment;
  segment.bytes = std::uint64_t{1} << 34;
  segment.address = std::uint64_t{1} << 40;
  if (!ipc) {
    segment.handle.Set(fb::DescriptorHandleT{});
    return segment;
  }
  fb::IpcHandleT handle;
  handle.handle.assign(66, 0xab);
  handle.offset_bytes = 512;
  handle.event.assign(64, 0xcd);
  handle.counter = "/torch_1234";
  handle.counter_offset = 8;
  segment.handle.Set(std::move(handle));
  return segment;
}

template <typename T>
std::unique_ptr<T> owned(T value) {
  return std::make_unique<T>(std::move(value));
}

template <typename BodyT>
fb::BodyUnion any(BodyT body) {
  fb::BodyUnion out;
  out.Set(std::move(body));
  return out;
}

template <typename BodyT>
BodyT with_selector() {
  BodyT body;
  body.selector = owned(selector());
  return body;
}

inline void add_requests(std::vector<fb::BodyUnion>& out) {
  fb::HelloT hello;
  hello.min_version = 1;
  hello.max_version = 3;
  hello.capabilities = 5;
  hello.label = "engine";
  hello.command = "python -m engine";
  hello.pid = 4321;
  hello.container = "docker-0123";
  out.push_back(any(std::move(hello)));
  out.push_back(any(with_selector<fb::AttachT>()));
  fb::DetachT detach;
  detach.lease = 12;
  detach.code = -5;
  detach.message = "segment 0 is smaller than it says";
  out.push_back(any(std::move(detach)));
  out.push_back(any(with_selector<fb::LookupT>()));
  auto wait = with_selector<fb::WaitT>();
  wait.timeout_ms = 60'000;
  out.push_back(any(std::move(wait)));
  fb::BeginT begin;
  begin.name = "org/llama-3-8b";
  begin.form = R"({"engine":"vllm"})";
  begin.rank = 1;
  begin.world = 2;
  begin.device = "cpu";
  begin.transport = 1;
  begin.fingerprint = "00112233445566778899aabbccddeeff";
  begin.aliases = {"receipt:1"};
  begin.structure = "xxh3:0011";
  begin.replace = true;
  begin.wait = true;
  begin.timeout_ms = 1000;
  begin.total_bytes = 99;
  begin.source = "/models/llama-3-8b";
  begin.free_bytes = std::uint64_t{1} << 36;
  begin.address = std::uint64_t{1} << 44;
  out.push_back(any(std::move(begin)));
  fb::ReserveT reserve;
  reserve.load = 3;
  reserve.segments = {std::uint64_t{1} << 30, 4096};
  reserve.manifest_bytes = 4096;
  out.push_back(any(std::move(reserve)));
  for (const bool ipc : {false, true}) {
    fb::SupplyT supply;
    supply.load = 3;
    supply.index = 1;
    supply.segment = owned(segment(ipc));
    out.push_back(any(std::move(supply)));
  }
  fb::ReportProgressT report;
  report.load = 3;
  report.done_bytes = 5;
  report.total_bytes = 10;
  out.push_back(any(report));
  fb::PublishT publish;
  publish.load = 3;
  publish.fingerprint = "00112233445566778899aabbccddeeff";
  publish.aliases = {"receipt:1", "sha256:2"};
  out.push_back(any(std::move(publish)));
  fb::AbandonT abandon;
  abandon.load = 3;
  abandon.code = -5;
  abandon.message = "shard 2 is truncated";
  out.push_back(any(std::move(abandon)));
}

inline void add_operator_requests(std::vector<fb::BodyUnion>& out) {
  auto list = with_selector<fb::ListT>();
  list.after = 8;
  out.push_back(any(std::move(list)));
  auto leases = with_selector<fb::LeasesT>();
  leases.after = 9;
  out.push_back(any(std::move(leases)));
  out.push_back(any(fb::StatusT{}));
  auto evict = with_selector<fb::EvictT>();
  evict.force = true;
  out.push_back(any(std::move(evict)));
  auto pin = with_selector<fb::PinT>();
  pin.pinned = true;
  out.push_back(any(std::move(pin)));
  auto drain = with_selector<fb::DrainT>();
  drain.timeout_ms = 5000;
  drain.undo = true;
  out.push_back(any(std::move(drain)));
  fb::StopT stop;
  stop.drop = true;
  out.push_back(any(stop));
  fb::CancelT cancel;
  cancel.request = 17;
  out.push_back(any(cancel));
}

inline void add_replies(std::vector<fb::BodyUnion>& out) {
  fb::WelcomeT welcome;
  welcome.version = 1;
  welcome.epoch = "ffeeddccbbaa99887766554433221100";
  welcome.pid = 99;
  welcome.capabilities = 1;
  welcome.software = "weightcache 0.1.0";
  out.push_back(any(std::move(welcome)));
  fb::AttachedT attached;
  attached.lease = 12;
  attached.entry = owned(entry());
  attached.manifest_bytes = 70'000;
  attached.segments.push_back(owned(segment(false)));
  attached.segments.push_back(owned(segment(true)));
  attached.ticket.assign(32, 0x5a);
  out.push_back(any(std::move(attached)));
  fb::EntryT found;
  found.entry = owned(entry());
  out.push_back(any(std::move(found)));
  fb::GrantedT granted;
  granted.load = 3;
  out.push_back(any(granted));
  fb::ResidentT resident;
  resident.entry = owned(entry());
  out.push_back(any(std::move(resident)));
  fb::ReservedT reserved;
  reserved.load = 3;
  reserved.bytes = 4096;
  out.push_back(any(reserved));
  fb::PublishedT published;
  published.entry = owned(entry());
  published.outcome = fb::Outcome::prepared;
  out.push_back(any(std::move(published)));
  fb::ProgressT progress;
  progress.entry = owned(entry());
  progress.rate_bytes_per_s = 1'000'000;
  out.push_back(any(std::move(progress)));
  fb::EntriesT entries;
  entries.entries.push_back(owned(entry()));
  entries.entries.push_back(owned(entry()));
  entries.next = 2;
  out.push_back(any(std::move(entries)));
  out.push_back(any(fb::DoneT{}));
  out.push_back(any(to_failure({Code::not_found, "no entry \"x\"", "ENOENT"})));
}

inline void add_operator_replies(std::vector<fb::BodyUnion>& out) {
  fb::LeaseInfoT lease;
  lease.lease = 12;
  lease.entry_name = "org/llama-3-8b";
  lease.generation = 7;
  lease.form = "raw";
  lease.rank = 1;
  lease.device = "cpu";
  lease.bytes = 10;
  lease.label = "engine";
  lease.command = "python -m engine";
  lease.pid = 4321;
  lease.uid = 1000;
  lease.container = "docker-0123";
  lease.since_unix_ns = 5;
  fb::LeaseListT leases;
  leases.leases.push_back(owned(std::move(lease)));
  leases.next = 13;
  out.push_back(any(std::move(leases)));
  fb::DeviceStatusT device;
  device.device = "cpu";
  device.bytes = 1;
  device.budget_bytes = 2;
  device.loading_bytes = 3;
  device.releasing_bytes = 4;
  fb::StatusReportT status;
  status.epoch = "ffeeddccbbaa99887766554433221100";
  status.pid = 99;
  status.software = "weightcache 0.1.0";
  status.uptime_ns = 1;
  status.rss_bytes = 2;
  status.entries = 3;
  status.leases = 4;
  status.connections = 5;
  status.devices.push_back(owned(std::move(device)));
  out.push_back(any(std::move(status)));
  fb::EvictedT evicted;
  evicted.entries = 1;
  evicted.bytes = 2;
  evicted.leases = 3;
  out.push_back(any(evicted));
  fb::StoppingT stopping;
  stopping.kept_bytes = 1;
  stopping.dropped_bytes = 2;
  out.push_back(any(stopping));
  fb::ResumedT resumed;
  resumed.epoch = "ffeeddccbbaa99887766554433221100";
  resumed.pid = 99;
  out.push_back(any(resumed));
}

inline std::vector<fb::BodyUnion> all() {
  std::vector<fb::BodyUnion> out;
  add_requests(out);
  add_operator_requests(out);
  add_replies(out);
  add_operator_replies(out);
  return out;
}

}  // namespace wc::wire::samples
