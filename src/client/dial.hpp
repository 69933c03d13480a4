// From nothing to a connected socket whose other end is trusted. Inside this folder only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "base/result.hpp"
#include "client/address.hpp"
#include "client/waiting.hpp"

namespace wc::client {

struct DialOptions {
  std::string socket;  // empty: where address.hpp says
  std::vector<std::uint32_t> trusted_uids;
  Patience patience;
  std::chrono::nanoseconds limit{};  // for messages: what the patience was made of
  Environment environment;
};

struct Dialed {
  Fd socket;
  std::string path;
  std::uint32_t uid = 0;  // who listens
};

/// Tries each path: directory checked before connecting, SO_PEERCRED after, nothing read yet.
/// Errors: disconnected (each path with its reason, and how to start a daemon), denied (none could
/// be used and one may not be), timed_out, cancelled, invalid_argument, io.
[[nodiscard]] Result<Dialed> dial(const DialOptions& options);

}  // namespace wc::client
