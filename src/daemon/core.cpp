#include "daemon/core.hpp"

#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/kill_point.hpp"
#include "base/units.hpp"
#include "daemon/convert.hpp"
#include "daemon/dispatch.hpp"
#include "daemon/handlers.hpp"
#include "daemon/log.hpp"

namespace wc::daemon {

Core::Core(EventLoop& loop, HelperClient& helper, Options options)
    : loop_(loop),
      helper_(helper),
      options_(std::move(options)),
      started_(Clock::now()),
      holds_(helper),
      takes_(loop, helper, options_.limits,
             [this](catalog::SessionId id, Result<std::vector<Fd>> descriptors) {
               taken(id, std::move(descriptors));
             }) {
  if (options_.keeper == nullptr || options_.unreadable) return;
  options_.keeper->set_hooks({[this] { flush_held(); }, [this] { put_all(); }});
}

catalog::Now Core::now() const {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  return {loop_.now(), std::chrono::nanoseconds(since_epoch).count()};
}

// ---- sessions
// ------------------------------------------------------------------------------------

Result<> Core::admit(Fd socket, const wire::Peer& peer) {
  const catalog::SessionId id{next_session_++};
  auto session = TRY(Session::create(loop_, *this, std::move(socket), {id, peer, options_.limits}));
  clients_[id].session = std::move(session);
  return {};
}

Session* Core::session(catalog::SessionId id) {
  const auto found = clients_.find(id);
  return found != clients_.end() ? found->second.session.get() : nullptr;
}

Client& Core::client_of(const Session& session) { return clients_.at(session.id()); }

std::size_t Core::descriptors_due(const Session& session) {
  for (const auto& [id, load] : client_of(session).loads) {
    if (load.transport == memory::Transport::vmm_fd && !load.cancelled) return 1;
  }
  return 0;
}

Result<> Core::take_descriptors(Session& session, const wire::fb::Message& message) {
  if (message.body_type() != wire::fb::Body::Supply) {
    return fail(Code::corrupt, "descriptors came with {}", wire::name_of(message.body_type()));
  }
  Fd socket = TRY(session.copy_of_socket());
  takes_.ask({session.id(), session.peer().uid, std::move(socket)});
  return {};
}

void Core::taken(catalog::SessionId id, Result<std::vector<Fd>> descriptors) {
  Session* of = session(id);
  if (of != nullptr && of->wants_taken()) return of->taken(std::move(descriptors));
  if (descriptors && !descriptors->empty()) dispose(std::move(*descriptors));
}

void Core::on_message(Session& session, const wire::fb::Message& message,
                      std::vector<Fd> descriptors) {
  dispatch(*this, session, message, descriptors);
  if (!descriptors.empty()) refuse_descriptors(session, std::move(descriptors));
  settle();
}

// Each costs the helper some work, which a peer could ask for faster than it is done.
void Core::refuse_descriptors(Session& session, std::vector<Fd> descriptors) {
  dispose(std::move(descriptors));
  if (++client_of(session).refused_descriptors < kMaxRefusedDescriptors) return;
  session.part(
      0, Error{Code::invalid_argument,
               format("{} packets with descriptors that were of no use", kMaxRefusedDescriptors),
               {}});
}

void Core::on_ended(Session& session) {
  loop_.later([this, id = session.id()] { bury(id); });
}

// What the peer has sent and nobody has read may hold descriptors, whose close may take long.
void Core::bury(catalog::SessionId id) {
  const auto found = clients_.find(id);
  if (found == clients_.end()) return;
  Fd socket = found->second.session->take_socket();
  if (found->second.kept && options_.keeper != nullptr) {
    options_.keeper->drop({Shelved::connection, 0, std::to_underlying(id)});
    options_.keeper->drop_group(Shelved::lease, std::to_underlying(id));
  }
  clients_.erase(found);
  ::shutdown(socket.get(), SHUT_RDWR);
  int unread = 0;
  if (::ioctl(socket.get(), FIONREAD, &unread) == 0 && unread > 0) {
    std::vector<Fd> holders;
    holders.push_back(std::move(socket));
    dispose(std::move(holders));
  }
  socket.reset();
  catalog_.session_closed(id, now());
  settle();
  withdraw_ipc_of(id);
}

// Memory that its publisher's process owns is gone with it: nobody may be handed it any more.
void Core::withdraw_ipc_of(catalog::SessionId publisher) {
  std::vector<catalog::Selector> withdrawn;
  for (const auto& [id, entry] : store_) {
    if (entry.transport != memory::Transport::torch_ipc || entry.owner != publisher) continue;
    if (entry.fingerprint.empty() || entry.given_back) continue;
    catalog::Selector selector;
    selector.fingerprint = entry.fingerprint;
    selector.device = entry.device;
    withdrawn.push_back(std::move(selector));
  }
  for (const catalog::Selector& selector : withdrawn) {
    const auto evicted = catalog_.evict(selector, true, now());
    settle();
    if (!evicted) continue;  // an operator was faster
    report(Level::warning,
           "withdrew \"@{}\" ({}): its publisher's process, which owns the memory, "
           "is gone",
           selector.fingerprint, format_bytes(evicted->bytes));
  }
}

// ---- loads
// ---------------------------------------------------------------------------------------

Result<Load*> Core::load_of(const Session& session, catalog::EntryId load) {
  auto& loads = client_of(session).loads;
  const auto found = loads.find(load);
  if (found == loads.end()) {
    return fail(Code::not_found, "this connection has no load {}",
                static_cast<std::uint64_t>(load));
  }
  if (found->second.cancelled) {
    return fail(Code::cancelled, "the load was cancelled by an eviction");
  }
  return &found->second;
}

void Core::granted(Session& session, std::uint64_t request, catalog::EntryId id, Load load) {
  kill_point("daemon.granted");
  client_of(session).loads[id] = std::move(load);
  session.let_descriptors_in(descriptors_due(session) > 0);
  fb::GrantedT answer;
  answer.load = static_cast<std::uint64_t>(id);
  session.send(request, answer);
}

void Core::load_over(Session& session, catalog::EntryId load) {
  client_of(session).loads.erase(load);
  session.let_descriptors_in(descriptors_due(session) > 0);
}

Result<> Core::room_for_descriptors(std::size_t more) const {
  const std::size_t half = options_.descriptor_limit / 2;
  const std::size_t room = half > kOwnDescriptors ? half - kOwnDescriptors : 0;
  const std::size_t used = store_.descriptor_count();
  if (used + more <= room) return {};
  return fail(Code::exhausted,
              "the daemon keeps {} of {} descriptors, {} more are needed: use fewer and larger "
              "segments, evict something, or start the daemon with a higher limit of open files "
              "(now {})",
              format_count(used), format_count(room), format_count(more),
              format_count(options_.descriptor_limit));
}

void Core::job_over(catalog::EntryId entry) {
  StoredEntry* stored = store_.find(entry);
  if (stored == nullptr) return;
  --stored->jobs;
  if (!stored->given_back || stored->jobs > 0) return;
  if (!std::exchange(stored->kept, false) || options_.keeper == nullptr) return give_back(entry);
  // Not before the supervisor's are closed: the helper's are the last.
  options_.keeper->drop({Shelved::memory, 0, std::to_underlying(entry)});
  options_.keeper->after(options_.keeper->covering(true), [this, entry] { give_back(entry); });
  schedule_commit();
}

void Core::give_back(catalog::EntryId entry) {
  helper_.release(store_.take(entry), [this, entry] {
    const auto released = catalog_.released(entry, now());
    if (!released) report(Level::error, "released what was not: {}", released.error().message);
    settle();
    holds_.end_unused(catalog_.devices());
  });
}

void Core::dispose(std::vector<Fd> descriptors) {
  for (Fd& descriptor : descriptors) disposing_.push_back(std::move(descriptor));
  dispose_some();
}

void Core::dispose_some() {
  if (dispose_under_way_ || disposing_.empty()) return;
  std::vector<Fd> some;
  while (!disposing_.empty() && some.size() < wire::kMaxDescriptors) {
    some.push_back(std::move(disposing_.back()));
    disposing_.pop_back();
  }
  dispose_under_way_ = true;
  helper_.release(std::move(some), [this] {
    dispose_under_way_ = false;
    dispose_some();
  });
}

// ---- effects
// -------------------------------------------------------------------------------------

void Core::settle() {
  for (auto effects = catalog_.take_effects(); !effects.empty();
       effects = catalog_.take_effects()) {
    for (catalog::Effect& effect : effects) {
      std::visit([this](auto& each) { carry_out(each); }, effect);
    }
  }
  arm_deadline();
  schedule_commit();
}

void Core::carry_out(catalog::ReleaseMemory& effect) {
  StoredEntry* stored = store_.find(effect.entry);
  if (stored == nullptr) stored = &store_.add(effect.entry, {});
  stored->given_back = true;
  ++stored->jobs;
  job_over(effect.entry);
}

void Core::carry_out(catalog::Answer& effect) {
  Session* to = session(effect.session);
  if (to == nullptr) return;
  const auto request = static_cast<std::uint64_t>(effect.request);
  auto& begins = client_of(*to).begins;
  Load load;
  if (const auto begun = begins.find(request); begun != begins.end()) {
    load = std::move(begun->second);
    begins.erase(begun);
  }
  if (auto* reservation = std::get_if<catalog::Reservation>(&effect.what)) {
    room_made(*this, *to, request, std::move(*reservation));
    return;
  }
  client_of(*to).reserves.erase(request);
  if (const auto* grant = std::get_if<catalog::Granted>(&effect.what)) {
    granted(*to, request, grant->load, std::move(load));
  } else if (const auto* resident = std::get_if<catalog::Resident>(&effect.what)) {
    fb::ResidentT answer;
    answer.entry = to_wire_ptr(resident->entry);
    to->send(request, answer);
  } else if (const auto* entry = std::get_if<catalog::EntryInfo>(&effect.what)) {
    fb::EntryT answer;
    answer.entry = to_wire_ptr(*entry);
    to->send(request, answer);
  } else {
    to->send_failure(request, std::get<Error>(effect.what));
  }
}

void Core::carry_out(catalog::Progress& effect) {
  Session* to = session(effect.session);
  if (to == nullptr || !to->idle()) return;  // who does not read has no use for more of it
  fb::ProgressT event;
  event.entry = to_wire_ptr(*effect.entry);
  event.rate_bytes_per_s = effect.rate_bytes_per_s;
  to->send(static_cast<std::uint64_t>(effect.request), event);
}

void Core::carry_out(catalog::CancelLoad& effect) {
  const auto client = clients_.find(effect.session);
  if (client == clients_.end()) return;
  const auto load = client->second.loads.find(effect.load);
  if (load != client->second.loads.end()) load->second.cancelled = true;
}

void Core::carry_out(catalog::EvictedForRoom& effect) {
  for (const catalog::MadeRoom& each : effect.evicted) {
    report(Level::info, "evicted \"{}@{}\" ({}): nobody used it, and \"{}\" needs {} on \"{}\"",
           each.name, each.generation, format_bytes(each.bytes), effect.name,
           format_bytes(effect.needed_bytes), effect.device);
  }
}

void Core::arm_deadline() {
  const auto next = catalog_.next_deadline();
  if (next == armed_for_) return;
  armed_for_ = next;
  deadline_.reset();
  if (!next) return;
  deadline_ = loop_.at(*next, [this] {
    armed_for_.reset();
    catalog_.expire(now());
    settle();
  });
}

}  // namespace wc::daemon
