// The core's part in surviving: what it gives to the supervisor, when, and what it makes of what a
// former process gave.
#include <algorithm>

#include <sys/random.h>
#include <unistd.h>

#include "base/kill_point.hpp"
#include "base/units.hpp"
#include "daemon/core.hpp"
#include "daemon/log.hpp"
#include "daemon/saved.hpp"
#include "wire/limits.hpp"

namespace wc::daemon {
namespace {

namespace fb = wire::fb;

std::uint64_t number_of(catalog::SessionId id) { return std::to_underlying(id); }

constexpr ShelfKey kStateKey{Shelved::state, 0, 0};
constexpr std::chrono::seconds kUsesInterval{1};

// Lease ids of an earlier process must not come back: each begins somewhere else.
std::uint32_t first_use() {
  std::uint32_t number = 0;
  static_cast<void>(::getrandom(&number, sizeof number, 0) == sizeof number);
  return number >> 1;
}

}  // namespace

// ---- keeping ------------------------------------------------------------------------------------

std::uint64_t Core::rests_on() {
  if (options_.keeper == nullptr || options_.unreadable) return 0;
  return options_.keeper->covering(catalog_.revision() != kept_revision_);
}

bool Core::kept(std::uint64_t batch) {
  return options_.keeper == nullptr || options_.keeper->acknowledged(batch);
}

void Core::schedule_commit() {
  if (options_.keeper == nullptr || options_.unreadable || commit_scheduled_) return;
  if (catalog_.revision() == kept_revision_ && !options_.keeper->has_changes())
    return schedule_uses();
  commit_scheduled_ = true;
  loop_.later([this] {
    commit_scheduled_ = false;
    commit();
  });
}

// When an entry was last used decides only who makes room first: no answer waits until it is kept.
void Core::schedule_uses() {
  if (catalog_.uses() == kept_uses_ || keep_uses_.armed()) return;
  keep_uses_ = loop_.at(loop_.now() + kUsesInterval, [this] {
    put_state();
    schedule_commit();
  });
}

void Core::put_state() {
  options_.keeper->put(kStateKey, save_state(catalog_.snapshot()), {});
  kept_revision_ = catalog_.revision();
  kept_uses_ = catalog_.uses();
}

void Core::commit() {
  if (catalog_.revision() != kept_revision_) put_state();
  options_.keeper->commit();
}

void Core::flush_held() {
  for (const catalog::SessionId id : std::exchange(held_, {})) {
    if (Session* each = session(id); each != nullptr) each->flush_held();
  }
}

void Core::keep_memory(catalog::EntryId entry) {
  StoredEntry* stored = store_.find(entry);
  if (options_.keeper == nullptr || stored == nullptr || stored->given_back) return;
  stored->kept = true;
  options_.keeper->put({Shelved::memory, 0, std::to_underlying(entry)}, save_memory(*stored),
                       stored->descriptors());
  if (stored->transport != memory::Transport::torch_ipc) return;
  if (Session* owner = session(stored->owner); owner != nullptr) keep_connection(*owner);
}

void Core::keep_connection(Session& session) {
  Client& client = client_of(session);
  if (options_.keeper == nullptr || client.kept) return;
  auto copy = duplicate(session.socket());
  if (!copy) {
    report(Level::warning, "cannot keep the connection of pid {}: {}", session.peer().pid,
           copy.error().message);
    return;
  }
  client.kept = true;
  std::vector<Fd> owned;
  owned.push_back(std::move(*copy));
  options_.keeper->put_owned({Shelved::connection, 0, number_of(session.id())},
                             save_connection(session.text()), std::move(owned));
}

void Core::keep_lease(Session& session, std::uint64_t request, catalog::LeaseId lease) {
  if (options_.keeper == nullptr) return;
  const auto saved = catalog_.saved_lease(lease);
  if (!saved) return;
  keep_connection(session);
  options_.keeper->put({Shelved::lease, number_of(session.id()), std::to_underlying(lease)},
                       save_lease({*saved, request}), {});
}

void Core::lease_over(Session& session, catalog::LeaseId lease) {
  if (options_.keeper == nullptr) return;
  options_.keeper->drop({Shelved::lease, number_of(session.id()), std::to_underlying(lease)});
  std::erase_if(client_of(session).unclaimed,
                [&](const auto& item) { return item.second == lease; });
}

std::optional<catalog::LeaseId> Core::unclaimed_lease(const Session& session,
                                                      std::uint64_t request) {
  auto& unclaimed = client_of(session).unclaimed;
  const auto found = unclaimed.find(request);
  if (found == unclaimed.end()) return std::nullopt;
  const catalog::LeaseId lease = found->second;
  unclaimed.erase(found);
  return lease;
}

void Core::put_all() {
  put_state();
  for (const auto& [id, stored] : store_) {
    if (stored.kept) keep_memory(id);
  }
  for (auto& [id, client] : clients_) {
    if (!std::exchange(client.kept, false)) continue;
    keep_connection(*client.session);
    for (const catalog::SavedLease& lease : catalog_.leases_of(id)) {
      options_.keeper->put({Shelved::lease, number_of(id), std::to_underlying(lease.lease)},
                           save_lease({lease, 0}), {});
    }
  }
}

// ---- restoring ----------------------------------------------------------------------------------

Result<> Core::restore_memory(const ShelfKey& key, ShelfItem& item) {
  const std::string bytes = TRY(bytes_of(item));
  auto stored = TRY(read_memory(std::as_bytes(std::span(bytes)), std::move(item.descriptors)));
  stored.kept = true;
  next_session_ = std::max(next_session_, number_of(stored.owner) + 1);
  holds_.want(stored.device);
  store_.add(catalog::EntryId{key.id}, std::move(stored));
  return {};
}

Result<> Core::restore_connection(const ShelfKey& key, ShelfItem& item) {
  const std::string bytes = TRY(bytes_of(item));
  auto text = TRY(read_connection(std::as_bytes(std::span(bytes))));
  if (item.descriptors.size() != 1) return fail(Code::corrupt, "a connection without its socket");
  const catalog::SessionId id{key.id};
  next_session_ = std::max(next_session_, key.id + 1);
  const auto peer = TRY(options_.policy.identify(item.descriptors.front()));
  auto session = TRY(Session::create(loop_, *this, std::move(item.descriptors.front()),
                                     {id, peer, options_.limits}));
  TRY(catalog_.session_opened(id));
  session->greet(std::move(text));
  session->let_descriptors_in(false);
  Client& client = clients_[id];
  client.session = std::move(session);
  client.kept = true;
  return {};
}

Result<> Core::restore_lease(const ShelfKey& key, ShelfItem& item) {
  const std::string bytes = TRY(bytes_of(item));
  auto kept = TRY(read_lease(std::as_bytes(std::span(bytes))));
  kept.lease.lease = catalog::LeaseId{key.id};
  const auto holder = clients_.find(catalog::SessionId{key.group});
  if (holder == clients_.end()) {  // its connection could not be kept
    options_.keeper->drop(key);
    return {};
  }
  TRY(catalog_.restore_lease(catalog::SessionId{key.group}, kept.lease));
  if (kept.request != 0) holder->second.unclaimed[kept.request] = kept.lease.lease;
  return {};
}

Result<> Core::restore(Shelf& shelf) {
  kill_point("daemon.restoring");
  const auto state = shelf.find(kStateKey);
  if (state == shelf.end()) {
    if (shelf.empty()) return {};
    return fail(Code::corrupt, "{} items are kept without a state", format_count(shelf.size()));
  }
  const std::string bytes = TRY(bytes_of(state->second));
  const auto snapshot = TRY(read_state(std::as_bytes(std::span(bytes))));
  TRY(catalog_.restore(snapshot));
  kept_revision_ = catalog_.revision();
  kept_uses_ = catalog_.uses();
  // In the order of their kinds: leases come last.
  for (auto& [key, item] : shelf) {
    if (key.kind == Shelved::memory) TRY(restore_memory(key, item));
    if (key.kind == Shelved::connection) TRY(restore_connection(key, item));
    if (key.kind == Shelved::lease) TRY(restore_lease(key, item));
  }
  for (const catalog::SavedEntry& entry : snapshot.entries) {
    if (store_.find(entry.id) == nullptr)
      return fail(Code::corrupt, "the memory of entry {} is missing", std::to_underlying(entry.id));
  }
  if (store_.size() != snapshot.entries.size())
    return fail(Code::corrupt, "{} entries have memory, {} are known", store_.size(),
                snapshot.entries.size());
  TRY(catalog_.restored(first_use()));
  kill_point("daemon.restored");
  resume();
  return {};
}

void Core::resume() {
  report(Level::info, "took over {} entries, {} connections and {} leases of its forerunner",
         format_count(store_.size()), format_count(clients_.size()),
         format_count(catalog_.lease_count()));
  settle();
  fb::ResumedT event;
  event.epoch = options_.epoch;
  event.pid = ::getpid();
  for (auto& [id, client] : clients_) {
    if ((client.session->text().capabilities & wire::kResumes) != 0) client.session->send(0, event);
  }
  std::vector<catalog::SessionId> gone;
  for (const auto& [id, stored] : store_) {
    if (stored.transport == memory::Transport::torch_ipc && !clients_.contains(stored.owner))
      gone.push_back(stored.owner);
  }
  for (const catalog::SessionId owner : gone) withdraw_ipc_of(owner);
}

}  // namespace wc::daemon
