#include "api/load_request.hpp"

#include "api/device.hpp"
#include "api/guard.hpp"
#include "api/source.hpp"
#include "api/structs.hpp"
#include "manifest/selector.hpp"
#include "memory/types.hpp"

namespace wc::api {
namespace {

constexpr std::uint32_t kMaxThreads = 1024;

Result<> check(const wc_load_options& known) {
  if (known.name != nullptr) TRY(manifest::valid_name(known.name));
  TRY(memory::transport_named(text_or_empty(known.transport)));
  if (known.tier < WC_TIER_AUTO || known.tier > WC_TIER_BUFFERED)
    return fail(Code::invalid_argument, "tier {} is none of WC_TIER_*", known.tier);
  TRY(check_address(known.address));
  if (known.threads > kMaxThreads)
    return fail(Code::invalid_argument, "{} threads, {} at most", known.threads, kMaxThreads);
  return {};
}

}  // namespace

Result<LoadRequest> load_request_of(const wc_connection& connection, const char* source,
                                    const wc_load_options* given) {
  TRY(required(source, "source"));
  const auto known = TRY(take_struct_or_default(given, "wc_load_options"));
  TRY(check(known));
  LoadRequest request;
  request.source = expand_home(source);
  request.name = text_or_empty(known.name);
  request.device = TRY(connection.devices->id_of(std::string(text_or_empty(known.device))));
  if (request.device.empty() && !Devices::gpu_may_exist()) request.device = "cpu";
  request.transport = text_or_empty(known.transport);
  request.reading.compat = known.compat != 0;
  request.reading.allow_trailing = known.allow_trailing != 0;
  request.reading.follow_symlinks = known.follow_symlinks != 0;
  request.tier = static_cast<load::Tier>(known.tier);
  request.threads = known.threads;
  request.address = known.address;
  request.digest = known.no_digest == 0;
  request.replace = known.replace != 0;
  request.wait = known.no_wait == 0;
  if (known.wait_ns != 0) request.wait_limit = duration_of(known.wait_ns);
  request.progress = known.progress;
  request.user = known.user;
  request.cancellation = inner(known.cancellation);
  return request;
}

}  // namespace wc::api
