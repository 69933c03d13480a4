// What the opaque handles of the ABI are, where more than one file needs to know.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weightcache/weightcache.h"

#include "api/device.hpp"
#include "client/cancellation.hpp"
#include "client/connection.hpp"
#include "wire/codec.hpp"

struct wc_cancellation {
  std::unique_ptr<wc::client::Cancellation> inner;
};

struct wc_connection {
  std::shared_ptr<wc::client::Connection> session;
  std::shared_ptr<wc::api::Devices> devices;
};

struct wc_entry_list {
  std::vector<wc::wire::fb::EntryInfoT> entries;
};

/// Of wc_load() and wc_publication_publish().
struct wc_load_result {
  wc::wire::fb::EntryInfoT entry;
  wc_load_info info;
};

namespace wc::api {

/// The cancellation behind a handle that may be NULL.
[[nodiscard]] inline const client::Cancellation* inner(const wc_cancellation* cancellation) {
  return cancellation == nullptr ? nullptr : cancellation->inner.get();
}

/// Of a struct that may be NULL. Errors: invalid_argument, unsupported.
[[nodiscard]] Result<client::ConnectOptions> connect_options_of(const wc_connect_options* given);

}  // namespace wc::api
