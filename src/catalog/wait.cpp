// Requests that wait: being told, answered, cancelled, and running out of time.
#include <algorithm>
#include <set>

#include "base/units.hpp"
#include "catalog/catalog.hpp"
#include "catalog/limits.hpp"
#include "catalog/tables.hpp"

namespace wc::catalog {
namespace {

// Whether waiting may still help.
bool may_come(const Error& error) {
  return error.code == Code::not_found || error.code == Code::busy;
}

std::string subject_of(const Tables& tables, const Waiter& waiter, const Now& now) {
  if (const auto* room = std::get_if<RoomWait>(&waiter.what))
    return format("room: {}", tables.no_room(*room, now).message);
  if (const auto* begin = std::get_if<BeginWait>(&waiter.what))
    return format("\"{}\": {}", begin->wanted.name, how_far(*begin->behind));
  if (const auto* drain = std::get_if<DrainWait>(&waiter.what)) {
    std::uint64_t leases = 0;
    for (const Entry* entry : drain->left) leases += entry->leases;
    return format("\"{}\" to drain: leases left: {}", drain->entry.name, leases);
  }
  const Selector& selector = std::get<EntryWait>(waiter.what).selector;
  if (const Entry* load = tables.loading(selector))
    return format("{}: {}", describe(selector), how_far(*load));
  const Result<Place> place = tables.attachable(selector);
  return format("{}: {}", describe(selector),
                place ? "it is there" : std::string_view(place.error().message));
}

}  // namespace

void Tables::end_wait(Waiter& waiter) {
  if (auto* begin = std::get_if<BeginWait>(&waiter.what); begin != nullptr && begin->behind) {
    std::erase(begin->behind->load->waiters, &waiter);
  } else if (auto* drain = std::get_if<DrainWait>(&waiter.what)) {
    for (Entry* entry : drain->left) std::erase(entry->drains, &waiter);
  } else if (const auto* room = std::get_if<RoomWait>(&waiter.what)) {
    room->load->load->room = nullptr;
  }
  waits.remove(sessions.at(waiter.session), waiter);
}

void Tables::wake() {
  if (changed.empty()) return;
  std::set<std::string> concerning;
  for (const Text& name : std::exchange(changed, {})) concerning.insert(*name);
  std::vector<Waiter*> concerned = waits.by_content();
  for (const std::string& name : concerning) {
    const std::vector<Waiter*> more = waits.by_name(name);
    concerned.insert(concerned.end(), more.begin(), more.end());
  }
  for (Waiter* waiter : concerned) {
    Result<Place> place = attachable(std::get<EntryWait>(waiter->what).selector);
    if (place) {
      answer(*waiter, info(*place));
    } else if (!may_come(place.error())) {
      answer(*waiter, std::move(place).error());
    }
  }
}

void Tables::tell(Waiter& waiter, const std::shared_ptr<const EntryInfo>& load, std::uint64_t rate,
                  Time now) {
  if (waiter.told != Time{} && now - waiter.told < kProgressInterval) return;
  waiter.told = now;
  effects.emplace_back(Progress{waiter.session, waiter.request, load, rate});
}

void Tables::tell_all(Entry& load, Time now) {
  Load& state = *load.load;
  if (state.told != Time{} && now - state.told < kProgressInterval) return;
  state.told = now;
  const std::string& name = *state.line->name->text;
  const auto shown = std::make_shared<const EntryInfo>(info(load));
  const std::uint64_t rate = state.rate.bytes_per_s();
  for (Waiter* waiter : state.waiters) tell(*waiter, shown, rate, now);
  const Subject subject{name, *load.form, shown->device, load.world, 0, &load};
  for (Waiter* waiter : waits.by_name(name)) {
    const Selector& selector = std::get<EntryWait>(waiter->what).selector;
    if (selector.rank == load.rank && matches(selector, subject)) tell(*waiter, shown, rate, now);
  }
  for (Waiter* waiter : waits.by_content()) {
    if (matches(std::get<EntryWait>(waiter->what).selector, subject))
      tell(*waiter, shown, rate, now);
  }
}

void Tables::drained(Entry& entry) {
  for (Waiter* waiter : std::exchange(entry.drains, {})) {
    DrainWait& drain = std::get<DrainWait>(waiter->what);
    std::erase(drain.left, &entry);
    if (!drain.left.empty()) continue;
    EntryInfo done = std::move(drain.entry);
    done.leases = 0;
    const auto still = entries.find(done.id);
    done.state = still != entries.end() && still->second.found ? State::draining : State::gone;
    answer(*waiter, std::move(done));
  }
}

Result<std::optional<EntryInfo>> Catalog::wait(SessionId session, RequestId request,
                                               const Selector& selector,
                                               std::optional<Time> deadline, const Now& now) {
  Tables& t = *tables_;
  Session* by = TRY(t.session(session));
  TRY(valid_selector(selector, false));
  Result<Place> place = t.attachable(selector);
  if (place) return t.info(*place);
  const bool over = selector.generation != 0 && place.error().code == Code::not_found &&
                    t.generations.passed(selector.name, selector.form, selector.generation);
  if (over || !may_come(place.error())) return Failure(std::move(place).error());
  TRY(t.waits.room(*by, request));
  Waiter waiter;
  waiter.session = session;
  waiter.request = request;
  waiter.since = now.steady;
  waiter.deadline = std::min(deadline.value_or(Time::max()), now.steady + kMaxWait);
  waiter.what = EntryWait{selector};
  Waiter& added = t.waits.add(*by, std::move(waiter));
  if (const Entry* load = t.loading(selector)) {
    t.tell(added, std::make_shared<const EntryInfo>(t.info(*load)), load->load->rate.bytes_per_s(),
           now.steady);
  }
  return std::nullopt;
}

bool Catalog::cancel(SessionId session, RequestId request, const Now& now) {
  Waiter* waiter = tables_->waits.find(session, request);
  if (waiter == nullptr) return false;
  tables_->answer(*waiter, Error{Code::cancelled, "the wait was cancelled", {}});
  tables_->make_room(now);
  return true;
}

std::optional<Time> Catalog::next_deadline() const {
  const auto wait = tables_->waits.next_deadline();
  const auto protection = tables_->next_protection_end();
  return wait && protection ? std::min(*wait, *protection) : wait ? wait : protection;
}

void Catalog::expire(const Now& now) {
  Tables& t = *tables_;
  while (Waiter* waiter = t.waits.expired(now.steady)) {
    Error error{Code::timed_out,
                format("timed out after {} waiting for {}",
                       format_duration(now.steady - waiter->since), subject_of(t, *waiter, now)),
                {}};
    t.answer(*waiter, std::move(error));
  }
  t.make_room(now);
}

}  // namespace wc::catalog
