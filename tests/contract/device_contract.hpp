// What an implementation of memory::Device tells the contract suite about itself. A program of the
// suite defines device_factories() and links wc_device_contract, which has the cases and main().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "memory/device.hpp"

namespace wc::contract {

struct DeviceFactory {
  std::string name;  // of the instance: letters and digits
  std::function<Result<std::unique_ptr<memory::Device>>()> open;
  /// Stores one byte through a view's address, by force. Where the view may not be written this
  /// ends the process by a signal, or returns an error.
  std::function<Result<>(memory::View& view, std::uint64_t offset, std::byte value)> store = {};
  /// Access::private_copy exists.
  bool private_copies = false;
  /// An address that nothing is mapped at in a fresh process.
  std::uint64_t free_address = 0;
  /// What goes down by what a segment takes, and up when it is gone; nothing: Device::free_bytes().
  /// For devices whose free bytes are everybody's, another process's use must not show.
  std::function<std::uint64_t()> free_bytes = {};
  /// By how much it may move for reasons that are none of the suite's.
  std::uint64_t noise_bytes = 0;
};

inline void PrintTo(const DeviceFactory& factory, std::ostream* out) { *out << factory.name; }

/// Those that this program tests; empty where the machine has none (the suite is then skipped).
[[nodiscard]] std::vector<DeviceFactory> device_factories();

}  // namespace wc::contract
