// What wc_load() was asked for, checked and made whole: everything that can be refused before a
// file is opened is refused here.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "weightcache/weightcache.h"

#include "api/device.hpp"
#include "api/handles.hpp"
#include "base/result.hpp"
#include "checkpoint/checkpoint.hpp"
#include "client/cancellation.hpp"
#include "client/waiting.hpp"
#include "load/fill.hpp"

namespace wc::api {

struct LoadRequest {
  std::string source;  // a path or a repository id
  std::string name;    // empty: the checkpoint's own
  std::string device;  // as the daemon knows it; empty: the only GPU, and there may be one
  std::string transport;
  checkpoint::OpenOptions reading;
  load::Tier tier = load::Tier::automatic;
  unsigned threads = 0;
  std::uint64_t address = 0;  // of the first segment, in every process; 0: any
  bool digest = true;
  bool replace = false;
  bool wait = true;
  std::chrono::nanoseconds wait_limit = client::kNoLimit;
  wc_progress_function progress = nullptr;
  void* user = nullptr;
  const client::Cancellation* cancellation = nullptr;
};

/// Errors: invalid_argument, unsupported (a transport's name), not_found (a device).
[[nodiscard]] Result<LoadRequest> load_request_of(const wc_connection& connection,
                                                  const char* source, const wc_load_options* given);

}  // namespace wc::api
