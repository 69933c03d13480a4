// What wc_attachment is, and attaching as wc_attach() and wc_verify() do it.
#pragma once

#include <atomic>
#include <cstddef>
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
  // The handle, until wc_detach(), and every tensor that was given to a framework.
  mutable std::atomic<std::size_t> keepers{1};
};

namespace wc::api {

/// One more owner of an attachment, whose last owner, on whatever thread, unmaps it.
class AttachmentKeeper {
 public:
  explicit AttachmentKeeper(const wc_attachment& attachment);
  AttachmentKeeper(const AttachmentKeeper&) = delete;
  AttachmentKeeper& operator=(const AttachmentKeeper&) = delete;
  ~AttachmentKeeper();

 private:
  const wc_attachment* attachment_;
};

/// Ends the handle's own share.
void let_go(const wc_attachment* attachment);

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
