// The bytes of one device: what is resident, loading and being released, against what is allowed.
// Plain values; the catalog alone moves bytes between the three.
#pragma once

#include <cstdint>
#include <string>

namespace wc::catalog {

struct DeviceStatus {
  std::string device;
  std::uint64_t budget_bytes = 0;     // 0: no limit
  std::uint64_t resident_bytes = 0;   // published, draining, prepared, gone but still leased
  std::uint64_t loading_bytes = 0;    // reserved by loads
  std::uint64_t releasing_bytes = 0;  // given to the daemon to release, not yet released
  [[nodiscard]] std::uint64_t used_bytes() const {
    return resident_bytes + loading_bytes + releasing_bytes;
  }
  /// What a reservation may take; 0 also where a lowered budget is overdrawn.
  [[nodiscard]] std::uint64_t free_bytes() const {
    if (budget_bytes == 0) return UINT64_MAX - used_bytes();
    return budget_bytes > used_bytes() ? budget_bytes - used_bytes() : 0;
  }
};

}  // namespace wc::catalog
