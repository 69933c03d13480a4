// Which memory serves in this process: host memory, or a GPU of its. The CUDA driver's library is
// opened when a GPU is first asked for, and never where there is none. One for each connection,
// kept by everything that maps memory through it. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/result.hpp"
#include "memory/cuda/driver.hpp"
#include "memory/device.hpp"

namespace wc::api {

class Devices {
 public:
  /// "cpu" or a UUID; each is opened once. Errors: not_found, unsupported, io, device.
  [[nodiscard]] Result<std::shared_ptr<memory::Device>> open(const std::string& name);

  /// What a user calls a device as the daemon knows it: "cuda:1" becomes a UUID; "", "cpu" and
  /// UUIDs stay as they are. Errors: not_found, unsupported, device.
  [[nodiscard]] Result<std::string> id_of(const std::string& name);

  /// The only GPU, "cpu" where there is none. Errors: invalid_argument (several: they are listed).
  [[nodiscard]] Result<std::string> default_id();

  /// Whether a GPU may be here, asked without waking the driver (its start takes 100 to 250 ms).
  [[nodiscard]] static bool gpu_may_exist();

 private:
  Result<std::shared_ptr<const memory::cuda::Driver>> driver();

  std::mutex mutex_;
  std::shared_ptr<const memory::cuda::Driver> driver_;
  std::map<std::string, std::shared_ptr<memory::Device>> opened_;
};

/// A fixed virtual address that somebody wants. Errors: invalid_argument (says which can be had).
[[nodiscard]] Result<> check_address(std::uint64_t address);

/// Errors: unsupported (the device can't do it: says which it can), as transport_named().
[[nodiscard]] Result<memory::Transport> transport_of(const memory::Device& device,
                                                     const std::string& name);

}  // namespace wc::api
