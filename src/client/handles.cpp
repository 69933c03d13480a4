#include "client/handles.hpp"

#include <algorithm>
#include <iterator>

namespace wc::client {
namespace {

std::vector<std::uint8_t> to_wire(std::span<const std::byte> bytes) {
  std::vector<std::uint8_t> out;
  std::ranges::transform(bytes, std::back_inserter(out), std::to_integer<std::uint8_t>);
  return out;
}

std::vector<std::byte> from_wire(std::span<const std::uint8_t> bytes) {
  std::vector<std::byte> out;
  std::ranges::transform(bytes, std::back_inserter(out), [](auto byte) { return std::byte(byte); });
  return out;
}

}  // namespace

OutgoingHandle outgoing(const memory::Handle& handle) {
  OutgoingHandle out;
  if (const auto* descriptor = std::get_if<Fd>(&handle)) {
    out.handle.Set(wire::fb::DescriptorHandleT{});
    out.descriptor = descriptor->view();
    return out;
  }
  const auto& ipc = std::get<memory::IpcHandle>(handle);
  wire::fb::IpcHandleT written;
  written.handle = to_wire(ipc.handle);
  written.offset_bytes = ipc.offset_bytes;
  written.event = to_wire(ipc.event);
  written.counter = ipc.counter;
  written.counter_offset = ipc.counter_offset;
  out.handle.Set(std::move(written));
  return out;
}

Result<memory::Handle> handle_from(const wire::fb::HandleUnion& handle, Fd descriptor) {
  if (descriptor) return memory::Handle(std::move(descriptor));
  const auto* ipc = handle.AsIpcHandle();
  if (ipc == nullptr) return fail(Code::corrupt, "a segment crossed without a handle");
  memory::IpcHandle read;
  read.handle = from_wire(ipc->handle);
  read.offset_bytes = ipc->offset_bytes;
  read.event = from_wire(ipc->event);
  read.counter = ipc->counter;
  read.counter_offset = ipc->counter_offset;
  return memory::Handle(std::move(read));
}

}  // namespace wc::client
