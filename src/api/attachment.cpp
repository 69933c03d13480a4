#include "api/attachment.hpp"

#include "api/gate.hpp"
#include "client/operations.hpp"

namespace wc::api {
namespace {

client::DeviceFinder finder_of(const wc_connection& connection) {
  return [devices = connection.devices](std::string_view device) {
    return devices->open(std::string(device));
  };
}

// The name as it is, or the path that it is too: a wait would never say that a name is not found.
Result<Wanted> settled(const wc_connection& connection, const Wanted& wanted) {
  if (wanted.else_path.empty()) return wanted;
  const auto found = client::look_up(*connection.session, wanted.selector);
  if (found || found.error().code != Code::not_found) return wanted;
  return as_path(wanted).value_or(wanted);
}

// Private copies exist in host memory only; where a GPU may be, the entry is asked what it is on.
Result<memory::Access> access_of(const wc_connection& connection, const AttachRequest& request,
                                 const wire::fb::SelectorT& selector) {
  switch (request.access) {
    case WC_ACCESS_SHARED:
      return memory::Access::shared_read;
    case WC_ACCESS_PRIVATE:
      return memory::Access::private_copy;
    case WC_ACCESS_DEFAULT:
      break;
    default:
      return fail(Code::invalid_argument, "access {} is none of WC_ACCESS_*", request.access);
  }
  std::string device = selector.device;
  if (device.empty() && Devices::gpu_may_exist()) {
    const auto found = client::look_up(*connection.session, selector);
    if (found) device = found->device;
  }
  const bool host = device.empty() || device == "cpu";
  return host ? memory::Access::private_copy : memory::Access::shared_read;
}

}  // namespace

AttachmentKeeper::AttachmentKeeper(const wc_attachment& attachment) : attachment_(&attachment) {
  attachment.keepers.fetch_add(1, std::memory_order_relaxed);
}

AttachmentKeeper::~AttachmentKeeper() { let_go(attachment_); }

void let_go(const wc_attachment* attachment) {
  if (attachment->keepers.fetch_sub(1, std::memory_order_acq_rel) == 1) delete attachment;
}

Result<std::unique_ptr<client::Attachment>> attach(const wc_connection& connection,
                                                   const AttachRequest& request,
                                                   ProgressTeller& progress) {
  client::AttachOptions options;
  options.device = finder_of(connection);
  options.expect = request.expect;
  options.wait = request.wait;
  options.on_progress = progress.waiting();
  options.cancellation = request.cancellation;
  Wanted wanted = request.wanted;
  if (request.wait > std::chrono::nanoseconds(0)) wanted = TRY(settled(connection, wanted));
  using Attached = Result<std::unique_ptr<client::Attachment>>;
  const auto by = [&](const wire::fb::SelectorT& selector) -> Attached {
    options.access = TRY(access_of(connection, request, selector));
    return client::attach(connection.session, selector, options);
  };
  auto attached = TRY(with_selector(wanted, by));
  TRY(check_gate(attached->manifest().fingerprint_json(), manifest::GatePlace::attach));
  return attached;
}

}  // namespace wc::api
