#include "base/units.hpp"
#include "daemon/convert.hpp"
#include "daemon/handlers.hpp"
#include "daemon/log.hpp"

namespace wc::daemon {

Result<> handle(Call& call, const fb::EvictT& message) {
  const auto evicted =
      TRY(call.core.catalog().evict(to_catalog(message.selector), message.force, call.core.now()));
  fb::EvictedT answer;
  answer.entries = evicted.entries;
  answer.bytes = evicted.bytes;
  answer.leases = evicted.leases;
  call.session.send(call.request, answer);
  report(Level::info, "pid {} evicted {} entries ({}, {} leases)", call.session.peer().pid,
         evicted.entries, format_bytes(evicted.bytes), evicted.leases);
  return {};
}

Result<> handle(Call& call, const fb::PinT& message) {
  const auto entry =
      TRY(call.core.catalog().pin(to_catalog(message.selector), message.pinned, call.core.now()));
  send_entry(call, entry);
  return {};
}

Result<> handle(Call& call, const fb::DrainT& message) {
  const auto now = call.core.now();
  const auto selector = to_catalog(message.selector);
  if (message.undo) {
    const auto entry = TRY(call.core.catalog().undrain(selector, now));
    send_entry(call, entry);
    return {};
  }
  const auto entry =
      TRY(call.core.catalog().drain(call.session.id(), catalog::RequestId{call.request}, selector,
                                    deadline_after(message.timeout_ms, now), now));
  if (entry) send_entry(call, *entry);
  return {};
}

// The descriptors end with this process, whatever was asked: nothing of the daemon's keeps memory
// beyond it. What readers have mapped stays theirs.
Result<> handle(Call& call, const fb::StopT&) {
  fb::StoppingT answer;
  for (const auto& device : call.core.catalog().devices()) {
    answer.dropped_bytes += device.resident_bytes + device.loading_bytes;
  }
  report(Level::info, "pid {} (user {}) stops the daemon", call.session.peer().pid,
         call.session.peer().uid);
  call.session.send(call.request, answer);
  call.core.stop();
  return {};
}

}  // namespace wc::daemon
