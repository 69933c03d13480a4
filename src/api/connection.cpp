// Cancellations and connections.
#include <utility>

#include "api/guard.hpp"
#include "api/handles.hpp"
#include "api/structs.hpp"

namespace wc::api {

Result<client::ConnectOptions> connect_options_of(const wc_connect_options* given) {
  const auto known = TRY(take_struct_or_default(given, "wc_connect_options"));
  client::ConnectOptions options;
  options.socket = text_or_empty(known.socket);
  options.label = text_or_empty(known.label);
  if (known.timeout_ns != 0) options.timeout = duration_of(known.timeout_ns);
  if (known.trusted_uid_count > 0) {
    TRY(required(known.trusted_uids, "trusted_uids"));
    options.trusted_uids.assign(known.trusted_uids, known.trusted_uids + known.trusted_uid_count);
  }
  return options;
}

}  // namespace wc::api

using wc::Result;
using wc::api::guarded;
using wc::api::required;

extern "C" {

int wc_cancellation_new(wc_cancellation** out) {
  return guarded([&]() -> Result<> {
    TRY(required(out, "out"));
    *out = nullptr;
    auto made = TRY(wc::client::Cancellation::create());
    *out = new wc_cancellation{std::move(made)};
    return {};
  });
}

void wc_cancel(wc_cancellation* cancellation) {
  if (cancellation != nullptr) cancellation->inner->cancel();
}

int wc_is_cancelled(const wc_cancellation* cancellation) {
  return cancellation != nullptr && cancellation->inner->is_cancelled() ? 1 : 0;
}

void wc_cancellation_free(wc_cancellation* cancellation) { delete cancellation; }

int wc_connect(const wc_connect_options* options, wc_connection** out) {
  return guarded([&]() -> Result<> {
    TRY(required(out, "out"));
    *out = nullptr;
    const auto known = TRY(wc::api::connect_options_of(options));
    auto session = TRY(wc::client::Connection::connect(known));
    auto devices = std::make_shared<wc::api::Devices>();
    *out = new wc_connection{std::move(session), std::move(devices)};
    return {};
  });
}

void wc_connection_free(wc_connection* connection) { delete connection; }

int wc_connection_daemon(const wc_connection* connection, wc_daemon_info* out) {
  return guarded([&]() -> Result<> {
    TRY(required(connection, "connection"));
    const wc::client::DaemonInfo& daemon = connection->session->daemon();
    wc_daemon_info info{};
    info.epoch = daemon.epoch.c_str();
    info.software = daemon.software.c_str();
    info.socket = daemon.socket.c_str();
    info.pid = daemon.pid;
    info.protocol = daemon.protocol;
    return wc::api::give_struct(out, info, "wc_daemon_info");
  });
}

}  // extern "C"
