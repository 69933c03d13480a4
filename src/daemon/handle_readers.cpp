#include "base/kill_point.hpp"
#include "daemon/convert.hpp"
#include "daemon/handlers.hpp"
#include "daemon/log.hpp"

namespace wc::daemon {

void send_entry(Call& call, const catalog::EntryInfo& entry) {
  fb::EntryT answer;
  answer.entry = to_wire_ptr(entry);
  call.session.send(call.request, answer);
}

namespace {

// A lease that was given before the daemon died, in an answer that its client does not have, is
// given again.
Result<catalog::Attached> attach(Call& call, const fb::AttachT& message) {
  const auto selector = to_catalog(message.selector);
  if (const auto lease = call.core.unclaimed_lease(call.session, call.request)) {
    catalog::Attached again;
    again.lease = *lease;
    again.entry = TRY(call.core.catalog().entry_of(call.session.id(), *lease));
    return again;
  }
  auto attached = TRY(call.core.catalog().attach(call.session.id(), selector, call.core.now()));
  call.core.keep_lease(call.session, call.request, attached.lease);
  return attached;
}

}  // namespace

Result<> handle(Call& call, const fb::AttachT& message) {
  const auto attached = TRY(attach(call, message));
  const catalog::EntryId id = attached.entry.id;
  const StoredEntry* stored = call.core.store().find(id);
  if (stored == nullptr) {
    static_cast<void>(
        call.core.catalog().detach(call.session.id(), attached.lease, call.core.now()));
    call.core.lease_over(call.session, attached.lease);
    return fail(Code::internal, "entry {} of \"{}\" has no memory", static_cast<std::uint64_t>(id),
                attached.entry.name);
  }
  kill_point("daemon.attached");
  fb::AttachedT answer;
  answer.lease = static_cast<std::uint64_t>(attached.lease);
  answer.entry = to_wire_ptr(attached.entry);
  answer.manifest_bytes = stored->manifest_bytes;
  answer.segments.reserve(stored->segments.size());
  for (const StoredSegment& segment : stored->segments) {
    answer.segments.push_back(std::make_unique<fb::SegmentInfoT>(to_wire(segment)));
  }
  // The packet may wait in the queue while its lease ends and the memory goes.
  call.session.send(call.request, answer,
                    [&store = call.core.store(), id]() -> Result<std::vector<FdView>> {
                      const StoredEntry* now = store.find(id);
                      if (now != nullptr && !now->given_back) return now->descriptors();
                      return fail(Code::cancelled, "the lease ended before its answer was read");
                    });
  return {};
}

namespace {

// A reader could not use what it was given. Whether that is the entry's fault, the catalog decides;
// the log tells in any case.
Result<> reject(Call& call, const fb::DetachT& message) {
  const wire::Peer& peer = call.session.peer();
  const Code code = code_of(message.code);
  catalog::Rejection rejection;
  rejection.why = message.message;
  rejection.uid = peer.uid;
  rejection.corrupt = code == Code::corrupt;
  rejection.trusted = call.core.options().policy.may_publish(peer);
  const auto rejected = TRY(call.core.catalog().reject(
      call.session.id(), catalog::LeaseId{message.lease}, std::move(rejection), call.core.now()));
  const catalog::EntryInfo& entry = rejected.entry;
  report(rejected.failed ? Level::error : Level::info, "{} \"{}@{}\": pid {} (user {}): {}: {}",
         rejected.failed ? "nobody can map" : "a reader could not map", entry.name,
         entry.generation, peer.pid, peer.uid, name_of(code), message.message);
  return {};
}

}  // namespace

Result<> handle(Call& call, const fb::DetachT& message) {
  if (message.code != 0) {
    TRY(reject(call, message));
  } else {
    TRY(call.core.catalog().detach(call.session.id(), catalog::LeaseId{message.lease},
                                   call.core.now()));
  }
  call.core.lease_over(call.session, catalog::LeaseId{message.lease});
  call.session.send(call.request, fb::DoneT());
  return {};
}

Result<> handle(Call& call, const fb::LookupT& message) {
  const auto entry = TRY(call.core.catalog().lookup(to_catalog(message.selector)));
  send_entry(call, entry);
  return {};
}

Result<> handle(Call& call, const fb::WaitT& message) {
  const auto now = call.core.now();
  const auto entry = TRY(call.core.catalog().wait(
      call.session.id(), catalog::RequestId{call.request}, to_catalog(message.selector),
      deadline_after(message.timeout_ms, now), now));
  if (entry) send_entry(call, *entry);
  return {};
}

Result<> handle(Call& call, const fb::CancelT& message) {
  static_cast<void>(call.core.catalog().cancel(
      call.session.id(), catalog::RequestId{message.request}, call.core.now()));
  call.session.send(call.request, fb::DoneT());
  return {};
}

}  // namespace wc::daemon
