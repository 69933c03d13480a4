#include "daemon/device_holds.hpp"

#include <algorithm>

#include "daemon/log.hpp"

namespace wc::daemon {

void DeviceHolds::want(const std::string& device) {
  if (device == "cpu" || !held_.try_emplace(device).second) return;
  helper_.hold(device, [this, device](Result<HelperClient::Done> done) {
    const auto found = held_.find(device);
    if (!done) {
      report(Level::warning, "cannot hold the device files of \"{}\": {}", device,
             done.error().message);
      if (found != held_.end()) held_.erase(found);  // the next load asks again
    } else if (found != held_.end()) {
      found->second = std::move(done->descriptors);
    } else {
      helper_.release(std::move(done->descriptors), {});
    }
  });
}

void DeviceHolds::end_unused(std::span<const catalog::DeviceStatus> devices) {
  for (auto held = held_.begin(); held != held_.end();) {
    const bool used = std::ranges::any_of(devices, [&](const catalog::DeviceStatus& device) {
      return device.device == held->first && device.used_bytes() > 0;
    });
    if (used) {
      ++held;
      continue;
    }
    if (!held->second.empty()) helper_.release(std::move(held->second), {});
    held = held_.erase(held);
  }
}

}  // namespace wc::daemon
