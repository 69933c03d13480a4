#include "catalog/wait_table.hpp"

#include "base/units.hpp"
#include "catalog/limits.hpp"

namespace wc::catalog {

std::size_t WaitTable::KeyHash::operator()(const Key& key) const {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15;
  const std::uint64_t mixed = std::to_underlying(key.first) * kOdd ^ std::to_underlying(key.second);
  return std::hash<std::uint64_t>{}(mixed);
}

Result<> WaitTable::room(const Session& session, RequestId request) const {
  if (waiters_.contains(Key{session.id, request}))
    return fail(Code::invalid_argument, "request {} waits already", std::to_underlying(request));
  if (session.waits.size() >= kMaxWaitsOfSession)
    return fail(Code::exhausted, "{} requests of this connection wait already", kMaxWaitsOfSession);
  if (waiters_.size() >= kMaxWaits)
    return fail(Code::exhausted, "{} requests wait already", format_count(kMaxWaits));
  return {};
}

std::vector<Waiter*>& WaitTable::list_of(const Selector& selector) {
  return selector.name.empty() ? by_content_ : by_name_[selector.name];
}

Waiter& WaitTable::add(Session& session, Waiter waiter) {
  const Key key{waiter.session, waiter.request};
  Waiter& added = waiters_.emplace(key, std::move(waiter)).first->second;
  deadlines_.emplace(added.deadline, &added);
  session.waits.push_back(&added);
  if (const auto* wait = std::get_if<EntryWait>(&added.what)) {
    list_of(wait->selector).push_back(&added);
  } else if (std::holds_alternative<RoomWait>(added.what)) {
    for_room_.push_back(&added);
  }
  return added;
}

void WaitTable::remove(Session& session, Waiter& waiter) {
  std::erase(session.waits, &waiter);
  deadlines_.erase({waiter.deadline, &waiter});
  if (const auto* wait = std::get_if<EntryWait>(&waiter.what)) {
    std::vector<Waiter*>& list = list_of(wait->selector);
    std::erase(list, &waiter);
    if (list.empty() && !wait->selector.name.empty()) by_name_.erase(wait->selector.name);
  } else if (std::holds_alternative<RoomWait>(waiter.what)) {
    std::erase(for_room_, &waiter);
  }
  waiters_.erase(Key{waiter.session, waiter.request});
}

Waiter* WaitTable::find(SessionId session, RequestId request) {
  const auto at = waiters_.find(Key{session, request});
  return at == waiters_.end() ? nullptr : &at->second;
}

std::vector<Waiter*> WaitTable::by_name(std::string_view name) const {
  const auto at = by_name_.find(name);
  return at == by_name_.end() ? std::vector<Waiter*>{} : at->second;
}

std::optional<Time> WaitTable::next_deadline() const {
  if (deadlines_.empty()) return std::nullopt;
  return deadlines_.begin()->first;
}

Waiter* WaitTable::expired(Time now) const {
  if (deadlines_.empty() || deadlines_.begin()->first > now) return nullptr;
  return deadlines_.begin()->second;
}

}  // namespace wc::catalog
