// The steps of a scenario: each makes its choices, takes the step on both sides, and compares the
// replies. A part of scenario.hpp, which includes it.
#pragma once

#include "catalog/scenario.hpp"

namespace wc::catalog {

inline Wanted Scenario::any_wanted() {
  Wanted w;
  w.name = format("n{}", choose_(3));
  w.world = 1 + choose_(2);
  w.rank = choose_(w.world);
  w.content = choose_(6);
  w.by_fingerprint = one_in(2);
  w.replace = one_in(3);
  w.wait = one_in(2);
  return w;
}

inline Chosen Scenario::any_chosen() {
  Chosen c;
  c.content = choose_(6);
  if (one_in(3)) return c;
  c.name = format("n{}", choose_(3));
  c.world = 1 + choose_(2);
  c.rank = choose_(c.world);
  if (one_in(4)) {
    const std::uint64_t last = model_.counters[c.name];
    c.generation = 1 + choose_(static_cast<std::uint32_t>(last) + 1);
    if (one_in(2)) c.generation = std::max<std::uint64_t>(1, last);
  }
  return c;
}

inline Selector Scenario::selector_of(const Chosen& chosen) {
  Selector selector = named(chosen.name, chosen.generation);
  if (chosen.name.empty()) {
    selector.fingerprint = fingerprint(chosen.content);
  } else {
    selector.rank = chosen.rank;
    selector.world = chosen.world;
  }
  return selector;
}

inline Model::MEntry* Scenario::any_load() {
  std::vector<Model::MEntry*> loads;
  for (Model::MEntry& entry : model_.entries) {
    if (entry.loading) loads.push_back(&entry);
  }
  if (loads.empty()) return nullptr;
  return loads[choose_(static_cast<std::uint32_t>(loads.size()))];
}

inline void Scenario::begin() {
  const Wanted w = any_wanted();
  BeginRequest request = wanting(w.name);
  request.rank = w.rank;
  request.world = w.world;
  request.replace = w.replace;
  request.wait = w.wait;
  if (w.by_fingerprint) {
    request.fingerprint = fingerprint(w.content);
  } else {
    request.aliases = {format("a{}", w.content)};
  }
  const std::uint64_t deadline = now_s_ + 1 + choose_(60);
  request.deadline = Time{} + std::chrono::seconds(deadline);
  const std::uint64_t session = any_session();
  said_ =
      format("begin {} rank {}/{} content {} by {}", w.name, w.rank, w.world, w.content, session);
  auto reply = catalog_.begin(SessionId{session}, RequestId{++last_request_}, request, now());
  std::string actual = code(reply);
  if (reply && !*reply) {
    actual = "wait";
  } else if (reply && std::holds_alternative<Granted>(**reply)) {
    actual = "granted";
  } else if (reply) {
    const EntryInfo& entry = std::get<Resident>(**reply).entry;
    actual = format("resident {} {}", entry.name, entry.generation);
  }
  const std::string expected = model_.begin(session, last_request_, w);
  expect(actual, expected);
  if (!difference_.empty()) return;
  if (actual == "granted") real_[model_.granted] = std::get<Granted>(**reply).load;
  wait_until(deadline, expected == "wait");
}

inline void Scenario::reserve() {
  if (!cancelled_.empty() && one_in(4)) {
    const auto [session, load] = cancelled_.back();
    said_ = "reserve for a cancelled load";
    const std::vector<std::uint64_t> one = {1};
    expect(code(catalog_.reserve(SessionId{session}, RequestId{++last_request_}, {load, one, {}},
                                 now())),
           std::string("cancelled"));
    expect(catalog_.abandon(SessionId{session}, load, now()).has_value(), true);
    cancelled_.pop_back();
    return;
  }
  Model::MEntry* load = any_load();
  if (load == nullptr) return;
  const std::uint64_t session = one_in(16) ? any_session() : load->session;
  const std::uint64_t bytes = 1 + choose_(6);
  said_ = format("reserve {} for {}", bytes, load->wanted.name);
  std::string expected = "ok";
  if (session != load->session) {
    expected = "not_found";
  } else if (load->sealing || model_.waits_for_room(load->id)) {
    expected = "busy";
  }
  const std::uint64_t deadline = now_s_ + 1 + choose_(60);
  const bool patient = one_in(2);
  const int id = load->id;  // the model's entries move
  ++last_request_;
  if (expected == "ok") expected = model_.reserve(session, last_request_, id, bytes, patient);
  ReserveRequest request{real_[id], {bytes}, {}};
  if (patient) request.room_deadline = Time{} + std::chrono::seconds(deadline);
  auto reply = catalog_.reserve(SessionId{session}, RequestId{last_request_}, request, now());
  std::string actual = code(reply);
  if (reply && !*reply) actual = "wait";
  expect(actual, expected);
  if (!difference_.empty() || !reply) return;
  if (!*reply) {
    if (!model_.waits.back().promised) wait_until(deadline, true);
    return;
  }
  if (!one_in(8)) return;
  catalog_.reserve_failed(real_[id], **reply, now());
  model_.entry(id)->bytes -= bytes;
  model_.make_room();
}

inline void Scenario::publish() {
  Model::MEntry* load = any_load();
  if (load == nullptr) return;
  const int id = load->id;
  const std::string digest = fingerprint(load->wanted.content);
  if (!load->sealing) {
    said_ = format("publish_begin {}", load->wanted.name);
    auto reply = catalog_.publish_begin(SessionId{load->session}, real_[id],
                                        {digest, {format("a{}", load->wanted.content)}});
    const bool waits = model_.waits_for_room(id);
    expect(code(reply), std::string(waits ? "busy" : load->bytes == 0 ? "invalid_argument" : "ok"));
    if (load->bytes == 0 || waits) return;
    load->sealing = true;
    load->fingerprint_order = ++model_.order;  // indexed anew
    if (!std::exchange(load->known_alias, true)) load->alias_order = model_.order;
    load->known_fingerprint = true;
  } else if (one_in(6)) {
    said_ = format("publish_failed {}", load->wanted.name);
    expect(code(catalog_.publish_failed(real_[id], now())), std::string("ok"));
    model_.end_load(id);
    model_.make_room();
  } else {
    said_ = format("publish_done {} content {}", load->wanted.name, load->wanted.content);
    auto reply = catalog_.publish_done(real_[id], {digest, {}, 1}, now());
    std::string actual = code(reply);
    if (reply) {
      const std::array<const char*, 3> outcomes = {"loaded", "already_resident", "prepared"};
      actual = format("{} {}", outcomes.at(static_cast<std::size_t>(reply->outcome)),
                      reply->entry.generation);
    }
    expect(actual, model_.publish_done(id));
  }
}

inline void Scenario::abandon() {
  Model::MEntry* load = any_load();
  if (load == nullptr || !one_in(4)) return;
  said_ = format("abandon {}", load->wanted.name);
  const int id = load->id;
  expect(code(catalog_.abandon(SessionId{load->session}, real_[id], now())), std::string("ok"));
  model_.end_load(id);
  model_.make_room();
}

inline void Scenario::attach() {
  const Chosen c = any_chosen();
  const std::uint64_t session = any_session();
  said_ = format("attach {}@{} {}/{} content {}", c.name, c.generation, c.rank, c.world, c.content);
  auto reply = catalog_.attach(SessionId{session}, selector_of(c), now());
  const Model::MPlace at = model_.attachable(c);
  expect(code(reply), std::string(name_of(at.error)));
  if (!reply || at.error != Code::ok) return;
  expect(reply->entry.generation, model_.set(at.set)->generation);
  expect(reply->entry.id, real_[model_.entry_at(at)]);
  model_.leases.push_back({session, at.set, at.rank, model_.next++});
  model_.use(model_.entry_at(at));
  real_leases_[model_.leases.back().id] = reply->lease;
}

inline void Scenario::detach() {
  if (model_.leases.empty()) return;
  const auto at = choose_(static_cast<std::uint32_t>(model_.leases.size()));
  const Model::MLease lease = model_.leases[at];
  said_ = "detach";
  const LeaseId real = real_leases_[lease.id];
  expect(code(catalog_.detach(SessionId{lease.session}, real, now())), std::string("ok"));
  expect(code(catalog_.detach(SessionId{lease.session}, real, now())), std::string("not_found"));
  model_.end_lease(lease.id, false);
  model_.make_room();
}

inline void Scenario::wait() {
  const Chosen c = any_chosen();
  const std::uint64_t session = any_session();
  const std::uint64_t deadline = now_s_ + 1 + choose_(60);
  said_ = format("wait {}@{} {}/{} content {}", c.name, c.generation, c.rank, c.world, c.content);
  auto reply = catalog_.wait(SessionId{session}, RequestId{++last_request_}, selector_of(c),
                             Time{} + std::chrono::seconds(deadline), now());
  std::string actual = code(reply);
  if (reply) actual = *reply ? format("entry {}", (*reply)->generation) : "wait";
  const std::string expected = model_.wait(session, last_request_, c);
  expect(actual, expected);
  wait_until(deadline, expected == "wait");
}

inline void Scenario::evict() {
  if (!one_in(3)) return;
  const Chosen c = any_chosen();
  const bool force = one_in(2);
  said_ = format("evict {}@{} content {} force {}", c.name, c.generation, c.content, force);
  Selector selector = selector_of(c);
  selector.world = 0;
  auto reply = catalog_.evict(selector, force, now());
  expect(
      reply ? format("evicted {} {} {}", reply->entries, reply->bytes, reply->leases) : code(reply),
      model_.evict(c, force));
}

inline void Scenario::pin() {
  const Chosen c = any_chosen();
  const bool pinned = one_in(3);
  said_ = format("pin {}@{} content {} {}", c.name, c.generation, c.content, pinned);
  expect(code(catalog_.pin(selector_of(c), pinned, now())), model_.pin(c, pinned));
}

inline void Scenario::keep_alive() {
  const Chosen c = any_chosen();
  const bool forever = one_in(4);
  const std::uint64_t keep = one_in(2) ? 0 : 1 + choose_(40);
  said_ = format("keep_alive {}@{} content {} {}", c.name, c.generation, c.content, keep);
  const auto time = forever ? kForever : std::chrono::nanoseconds(std::chrono::seconds(keep));
  expect(code(catalog_.keep_alive(selector_of(c), time, now())),
         model_.keep_alive(c, forever ? UINT64_MAX : keep));
}

inline void Scenario::drain() {
  const Chosen c = any_chosen();
  if (one_in(2)) {
    said_ = format("undrain {}@{} content {}", c.name, c.generation, c.content);
    expect(code(catalog_.undrain(selector_of(c), now())), model_.undrain(c));
    return;
  }
  const std::uint64_t session = any_session();
  const std::uint64_t deadline = now_s_ + 1 + choose_(60);
  said_ = format("drain {}@{} content {}", c.name, c.generation, c.content);
  auto reply = catalog_.drain(SessionId{session}, RequestId{++last_request_}, selector_of(c),
                              Time{} + std::chrono::seconds(deadline), now());
  std::string actual = code(reply);
  if (reply) actual = *reply ? "drained" : "wait";
  const std::string expected = model_.drain(session, last_request_, c);
  expect(actual, expected);
  wait_until(deadline, expected == "wait");
}

inline void Scenario::expire_or_cancel() {
  if (!model_.waits.empty() && one_in(3)) {
    const auto at = choose_(static_cast<std::uint32_t>(model_.waits.size()));
    const Model::MWait wait = model_.waits[at];
    said_ = format("cancel {}", wait.request);
    expect(catalog_.cancel(SessionId{wait.session}, RequestId{wait.request}, now()), true);
    expect(catalog_.cancel(SessionId{wait.session}, RequestId{wait.request}, now()), false);
    model_.cancel(wait.session, wait.request);
    return;
  }
  now_s_ += choose_(10);
  model_.now = now_s_;
  said_ = format("expire at {}", now_s_);
  catalog_.expire(now());
  model_.expire();
  const auto next = catalog_.next_deadline();
  expect(next.has_value(), !model_.waits.empty());
}

inline void Scenario::reconnect() {
  if (!one_in(4)) return;
  std::uint64_t& session = sessions_[choose_(kSessions)];
  said_ = format("close {}", session);
  catalog_.session_closed(SessionId{session}, now());
  model_.close(session);
  std::erase_if(cancelled_, [&](const auto& each) { return each.first == session; });
  open(session);
}

inline void Scenario::release() {
  if (due_.empty()) return;
  const auto [entry, bytes] = *due_.begin();
  said_ = "released";
  expect(code(catalog_.released(entry, now())), std::string("ok"));
  expect(code(catalog_.released(entry, now())), std::string("not_found"));
  model_.releasing -= bytes;
  due_.erase(entry);
  model_.make_room();
}

}  // namespace wc::catalog
