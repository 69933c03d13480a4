// The device files of the GPUs on which something is resident or loading: while the daemon holds
// one, the kernel's driver does not stop that GPU, which would end memory that descriptors keep.
// The helper opens them. Thread rule: the event loop's.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "catalog/budget.hpp"
#include "daemon/helper_client.hpp"

namespace wc::daemon {

class DeviceHolds {
 public:
  explicit DeviceHolds(HelperClient& helper) : helper_(helper) {}

  /// From the first reservation on a device. "cpu" needs none.
  void want(const std::string& device);
  /// Lets go of those on which nothing is any more.
  void end_unused(std::span<const catalog::DeviceStatus> devices);

 private:
  HelperClient& helper_;
  std::map<std::string, std::vector<Fd>> held_;  // empty: on its way, or there is none
};

}  // namespace wc::daemon
