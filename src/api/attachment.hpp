// What wc_attachment is, and attaching as wc_attach() and wc_verify() do it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "weightcache/weightcache.h"

#include "api/device.hpp"
#include "api/handles.hpp"
#include "api/progress.hpp"
#include "api/selector.hpp"
#include "base/result.hpp"
#include "client/attachment.hpp"

struct wc_attachment {
  std::unique_ptr<wc::client::Attachment> inner;
  // At hand for tensors by the ten thousand: the table, and the segments' addresses.
  std::optional<wc::manifest::Manifest> manifest;
  std::vector<std::uint64_t> segments;
  std::uint64_t attach_ns = 0;
};

namespace wc::api {

struct AttachRequest {
  Wanted wanted;
  int access = WC_ACCESS_DEFAULT;
  std::string expect;
  std::chrono::nanoseconds wait{0};
  const client::Cancellation* cancellation = nullptr;
};

/// Errors: as client::attach(); unsupported (a quantization method whose sharing is unproven).
[[nodiscard]] Result<std::unique_ptr<client::Attachment>> attach(const wc_connection& connection,
                                                                 const AttachRequest& request,
                                                                 ProgressTeller& progress);

}  // namespace wc::api
