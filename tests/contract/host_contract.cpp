// The contract, by host memory: with huge pages, and without.
#include "memory/host/host_device.hpp"
#include "memory/host/system_text.hpp"
#include "tests/contract/device_contract.hpp"

namespace wc::contract {
namespace {

Result<> store_byte(memory::View& view, std::uint64_t offset, std::byte value) {
  const std::uint64_t address = view.address() + offset;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address is what a view gives.
  *reinterpret_cast<volatile std::byte*>(address) = value;
  return {};
}

// All memory that is not in memfds, tmpfs and shared mappings: MemAvailable moves with every
// compiler that runs beside the suite.
std::uint64_t not_shared() {
  const auto text = memory::read_text("/proc/meminfo").value_or("");
  const auto total = memory::number_behind("MemTotal:", text).value_or(0);
  return (total - memory::number_behind("Shmem:", text).value_or(0)) * 1024;
}

DeviceFactory factory(std::string name, bool huge_pages) {
  return {.name = std::move(name),
          .open = [=] { return memory::open_host_device({.huge_pages = huge_pages}); },
          .store = store_byte,
          .private_copies = true,
          .free_address = 0x2000'0000'0000,
          .free_bytes = not_shared,
          .noise_bytes = std::uint64_t{64} << 20};
}

}  // namespace

std::vector<DeviceFactory> device_factories() {
  return {factory("Host", true), factory("HostWithSmallPages", false)};
}

}  // namespace wc::contract
