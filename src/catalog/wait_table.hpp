// The requests that wait: found by session and number, by deadline, and those that wait for an
// entry also by what they ask for. Whoever waits behind a load or drains an entry stands in the
// entry's record too, which the caller looks after.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "catalog/content_index.hpp"
#include "catalog/record.hpp"

namespace wc::catalog {

class WaitTable {
 public:
  /// Errors: invalid_argument (the number is in use), exhausted (a bound).
  [[nodiscard]] Result<> room(const Session& session, RequestId request) const;
  /// The caller has asked for room().
  Waiter& add(Session& session, Waiter waiter);
  /// The waiter is gone after this.
  void remove(Session& session, Waiter& waiter);
  [[nodiscard]] Waiter* find(SessionId session, RequestId request);
  /// Who waits for an entry of the name, and who does by content alone; first come first.
  [[nodiscard]] std::vector<Waiter*> by_name(std::string_view name) const;
  [[nodiscard]] std::vector<Waiter*> by_content() const { return by_content_; }
  /// Who waits for memory, first come first.
  [[nodiscard]] const std::vector<Waiter*>& for_room() const { return for_room_; }

  [[nodiscard]] std::optional<Time> next_deadline() const;
  /// The first whose deadline has come.
  [[nodiscard]] Waiter* expired(Time now) const;
  [[nodiscard]] std::size_t size() const { return waiters_.size(); }

  using Key = std::pair<SessionId, RequestId>;
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };
  using Waiters = std::unordered_map<Key, Waiter, KeyHash>;
  [[nodiscard]] const Waiters& all() const { return waiters_; }

 private:
  std::vector<Waiter*>& list_of(const Selector& selector);

  Waiters waiters_;
  std::set<std::pair<Time, Waiter*>> deadlines_;
  std::unordered_map<std::string, std::vector<Waiter*>, TextHash, std::equal_to<>> by_name_;
  std::vector<Waiter*> by_content_;
  std::vector<Waiter*> for_room_;
};

}  // namespace wc::catalog
