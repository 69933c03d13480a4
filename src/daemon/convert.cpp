#include "daemon/convert.hpp"

#include "catalog/limits.hpp"

namespace wc::daemon {
namespace {

template <typename To, typename From>
std::vector<To> copy_bytes(const std::vector<From>& bytes) {
  std::vector<To> out;
  out.reserve(bytes.size());
  for (const From byte : bytes) out.push_back(static_cast<To>(byte));
  return out;
}

}  // namespace

fb::EntryInfoT to_wire(const catalog::EntryInfo& entry) {
  fb::EntryInfoT out;
  out.name = entry.name;
  out.form = entry.form;
  out.rank = entry.rank;
  out.world = entry.world;
  out.fingerprint = entry.fingerprint;
  out.generation = entry.generation;
  out.state = static_cast<fb::State>(entry.state);
  out.device = entry.device;
  out.transport = entry.transport;
  out.tensors = entry.tensors;
  out.bytes = entry.bytes;
  out.segments = entry.segments;
  out.leases = entry.leases;
  out.pinned = entry.pinned;
  out.done_bytes = entry.done_bytes;
  out.total_bytes = entry.total_bytes;
  out.source = entry.source;
  out.since_unix_ns = entry.since_unix_ns;
  out.publisher_uid = entry.publisher_uid;
  out.address = entry.address;
  return out;
}

std::unique_ptr<fb::EntryInfoT> to_wire_ptr(const catalog::EntryInfo& entry) {
  return std::make_unique<fb::EntryInfoT>(to_wire(entry));
}

fb::LeaseInfoT to_wire(const catalog::LeaseInfo& lease, const Session* session) {
  fb::LeaseInfoT out;
  out.lease = static_cast<std::uint64_t>(lease.lease);
  out.entry_name = lease.name;
  out.generation = lease.generation;
  out.form = lease.form;
  out.rank = lease.rank;
  out.device = lease.device;
  out.bytes = lease.bytes;
  out.since_unix_ns = lease.since_unix_ns;
  if (session == nullptr) return out;
  out.label = session->text().label;
  out.command = session->text().command;
  out.container = session->text().container;
  out.pid = static_cast<std::int32_t>(session->peer().pid);
  out.uid = session->peer().uid;
  return out;
}

fb::SegmentInfoT to_wire(const StoredSegment& segment) {
  fb::SegmentInfoT out;
  out.bytes = segment.bytes;
  out.address = segment.address;
  if (!segment.handle) return out;
  const auto* ipc = std::get_if<memory::IpcHandle>(&*segment.handle);
  if (ipc == nullptr) {
    out.handle.Set(fb::DescriptorHandleT());
    return out;
  }
  fb::IpcHandleT handle;
  handle.handle = copy_bytes<std::uint8_t>(ipc->handle);
  handle.offset_bytes = ipc->offset_bytes;
  handle.event = copy_bytes<std::uint8_t>(ipc->event);
  handle.counter = ipc->counter;
  handle.counter_offset = ipc->counter_offset;
  out.handle.Set(std::move(handle));
  return out;
}

fb::DeviceStatusT to_wire(const catalog::DeviceStatus& device) {
  fb::DeviceStatusT out;
  out.device = device.device;
  out.bytes = device.resident_bytes;
  out.budget_bytes = device.budget_bytes;
  out.loading_bytes = device.loading_bytes;
  out.releasing_bytes = device.releasing_bytes;
  return out;
}

catalog::Selector to_catalog(const std::unique_ptr<fb::SelectorT>& selector) {
  catalog::Selector out;
  if (!selector) return out;
  out.name = selector->name;
  out.generation = selector->generation;
  out.fingerprint = selector->fingerprint;
  out.aliases = selector->aliases;
  out.form = selector->form;
  out.device = selector->device;
  out.rank = selector->rank;
  out.world = selector->world;
  return out;
}

std::optional<catalog::Time> deadline_after(std::uint64_t timeout_ms, const catalog::Now& now) {
  constexpr std::chrono::milliseconds kLongest = catalog::kMaxWait;
  if (timeout_ms == 0 || timeout_ms >= static_cast<std::uint64_t>(kLongest.count())) {
    return std::nullopt;
  }
  return now.steady + std::chrono::milliseconds(timeout_ms);
}

Result<memory::Transport> transport_for(std::string_view device, std::uint8_t number) {
  using memory::Transport;
  const auto wanted = static_cast<Transport>(number);
  if (device == "cpu") {
    if (number == 0 || wanted == Transport::host_fd) return Transport::host_fd;
    return fail(Code::unsupported, "cpu memory crosses by host_fd only, not by transport {}",
                number);
  }
  if (!device.starts_with("GPU-") && !device.starts_with("MIG-")) {
    return fail(Code::invalid_argument, "\"{}\" is no device: \"cpu\" or a GPU's UUID", device);
  }
  if (number == 0 || wanted == Transport::vmm_fd) return Transport::vmm_fd;
  if (wanted == Transport::torch_ipc) return Transport::torch_ipc;
  return fail(Code::unsupported, "GPU memory crosses by vmm_fd or torch_ipc, not by transport {}",
              number);
}

Result<memory::Handle> to_handle(const fb::SegmentInfoT& segment, memory::Transport transport,
                                 std::vector<Fd>& descriptors) {
  if (transport == memory::Transport::vmm_fd) {
    if (segment.handle.AsDescriptorHandle() == nullptr || descriptors.size() != 1) {
      return fail(Code::invalid_argument,
                  "a segment by vmm_fd takes one descriptor and says so, {} came",
                  descriptors.size());
    }
    memory::Handle handle = std::move(descriptors.front());
    descriptors.clear();
    return handle;
  }
  const auto* ipc = segment.handle.AsIpcHandle();
  if (ipc == nullptr || !descriptors.empty()) {
    return fail(Code::invalid_argument, "a segment by torch_ipc takes an IPC handle");
  }
  if (ipc->handle.size() != 64 && ipc->handle.size() != 66) {
    return fail(Code::invalid_argument, "an IPC handle of {} bytes; it has 64, or 66 with a prefix",
                ipc->handle.size());
  }
  memory::IpcHandle handle;
  handle.handle = copy_bytes<std::byte>(ipc->handle);
  handle.offset_bytes = ipc->offset_bytes;
  handle.event = copy_bytes<std::byte>(ipc->event);
  handle.counter = ipc->counter;
  handle.counter_offset = ipc->counter_offset;
  return memory::Handle(std::move(handle));
}

}  // namespace wc::daemon
