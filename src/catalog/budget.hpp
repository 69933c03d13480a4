// The bytes of one device: what is resident, loading and being released, against what is allowed.
// Plain values; the catalog alone moves bytes between the three.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

namespace wc::catalog {

struct DeviceStatus {
  std::string device;
  std::string budget_from;            // where the budget comes from, for people; empty: none is set
  std::uint64_t budget_bytes = 0;     // as set; 0: none, the device's own memory alone bounds
  std::uint64_t capacity_bytes = 0;   // the device's own memory as its loaders say; 0: unknown
  std::uint64_t resident_bytes = 0;   // published, draining, prepared, gone but still leased
  std::uint64_t loading_bytes = 0;    // reserved by loads
  std::uint64_t releasing_bytes = 0;  // given to the daemon to release, not yet released
  [[nodiscard]] std::uint64_t used_bytes() const {
    return resident_bytes + loading_bytes + releasing_bytes;
  }
  /// The budget, and never more than the device has. 0: no limit is known.
  [[nodiscard]] std::uint64_t limit_bytes() const {
    if (budget_bytes == 0 || capacity_bytes == 0) return std::max(budget_bytes, capacity_bytes);
    return std::min(budget_bytes, capacity_bytes);
  }
  /// What a reservation may take; 0 also where a lowered budget is overdrawn.
  [[nodiscard]] std::uint64_t free_bytes() const { return left_beside(used_bytes()); }
  /// The same once everything that is being given back is free.
  [[nodiscard]] std::uint64_t coming_bytes() const {
    return left_beside(resident_bytes + loading_bytes);
  }

 private:
  [[nodiscard]] std::uint64_t left_beside(std::uint64_t used) const {
    const std::uint64_t limit = limit_bytes() == 0 ? UINT64_MAX : limit_bytes();
    return limit > used ? limit - used : 0;
  }
};

}  // namespace wc::catalog
