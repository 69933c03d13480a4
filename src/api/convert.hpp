// Records of the wire as the ABI shows them. What is returned are views of what was given.
#pragma once

#include "weightcache/weightcache.h"

#include "wire/codec.hpp"

namespace wc::api {

[[nodiscard]] wc_entry_info view_of(const wire::fb::EntryInfoT& entry);
[[nodiscard]] wc_lease_info view_of(const wire::fb::LeaseInfoT& lease);
[[nodiscard]] wc_device_status view_of(const wire::fb::DeviceStatusT& device);
[[nodiscard]] wc_status_info view_of(const wire::fb::StatusReportT& status);

}  // namespace wc::api
