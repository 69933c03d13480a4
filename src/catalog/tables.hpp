// Everything the catalog holds, and the steps that change it. Each step leaves all tables
// consistent (audit.cpp says what that means); the public calls are made of checks, then steps. The
// calls of one concept are in one file: sets.cpp, resolve.cpp, begin.cpp, ...
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "catalog/budget.hpp"
#include "catalog/content_index.hpp"
#include "catalog/effects.hpp"
#include "catalog/generations.hpp"
#include "catalog/lease_table.hpp"
#include "catalog/limits.hpp"
#include "catalog/record.hpp"
#include "catalog/wait_table.hpp"

namespace wc::catalog {

inline constexpr std::uint16_t kNoDevice = UINT16_MAX - 1;  // one that the catalog never heard of

/// What a line is known by.
struct LineKey {
  std::string_view name;
  std::string_view form;
  std::uint32_t world = 1;
  std::uint16_t device = kNoDevice;
};

/// What is known of content before it is there, and after.
struct Content {
  std::string_view fingerprint;
  std::string_view structure;
  std::string_view source_digest;
};

/// Content on its way to a place of a line.
struct Claim {
  LineKey line;
  std::uint32_t rank = 0;
  bool replace = false;
};

struct Tables {
  struct Releasing {
    std::uint16_t device = 0;
    std::uint64_t bytes = 0;
  };
  using Verdict = std::variant<Decision, Entry*>;  // the entry: a load to wait for

  std::unordered_map<SessionId, Session> sessions;
  std::vector<DeviceStatus> devices;
  std::unordered_map<EntryId, Entry> entries;
  std::map<EntryId, Entry*> loads;  // in order, for lists
  std::map<std::uint64_t, Set> sets;
  std::unordered_map<std::string, Name, TextHash, std::equal_to<>> names;
  ContentIndex content;
  Generations generations;
  LeaseTable leases;
  WaitTable waits;
  std::unordered_map<EntryId, Releasing> releasing;
  std::vector<Effect> effects;
  std::vector<Text>
      changed;  // names for wake(): what they, or their content, mean is another thing
  std::uint64_t next_id = 1;  // of entries and sets
  std::uint64_t switches = 0;
  std::chrono::nanoseconds protection = kProtection;
  Time room_looked{};          // for room, so that the end of a protection is looked at once
  std::uint64_t revision = 0;  // rises with each change that a snapshot tells
  std::uint64_t uses = 0;      // rises with each change of when an entry was last used
  Text raw = std::make_shared<const std::string>("raw");

  // ---- tables.cpp: records and what is told about them ----
  [[nodiscard]] Result<Session*> session(SessionId id);
  [[nodiscard]] std::uint16_t find_device(std::string_view name) const;
  Result<std::uint16_t> make_device(std::string_view name);
  [[nodiscard]] EntryInfo info(const Set& set, std::uint32_t rank) const;
  [[nodiscard]] EntryInfo info(const Place& place) const { return info(*place.set, place.rank); }
  [[nodiscard]] EntryInfo info(const Entry& load) const;
  [[nodiscard]] EntryInfo content_info(const Entry& entry) const;
  [[nodiscard]] Text text_of_form(std::string_view form) const;

  // ---- sets.cpp: lines, sets, and the life of an entry ----
  [[nodiscard]] Line* find_line(const LineKey& key);
  Result<Line*> make_line(const LineKey& key);
  void tidy(Line& line);
  Result<Set*> make_pending(Line& line);
  Place put(Set& pending, std::uint32_t rank, Entry& entry);
  void switch_sets(Line& line);
  void take_away(Set& set);
  void drop(const Place& place);
  void drop_if_idle(Set& old);
  void drop_idle_sets_of(const Entry& entry);
  void settle(Entry& entry);
  void release(Entry& entry);
  void end_lease(LeaseId id, bool died, const Now& now);
  /// False: somebody can map it, or it has failed already, or has no name any more.
  bool fail_entry(Entry& entry, std::string_view why);
  /// Takes every set away that the entry is in; it may be gone then.
  void discard(Entry& entry);
  void use(Entry& entry, const Now& now);

  // ---- adopt.cpp: content comes under a name ----
  [[nodiscard]] Result<> free_of_other_content(const Claim& claim, const Content& claimed);
  Result<Place> adopt(const Claim& claim, Entry& entry);

  // ---- resolve.cpp: what a selector means ----
  [[nodiscard]] Result<Place> resolve(const Selector& selector) const;
  [[nodiscard]] Result<Place> resolve_or_explain(const Selector& selector) const;
  [[nodiscard]] Result<Place> attachable(const Selector& selector) const;
  [[nodiscard]] static Result<> takes_leases(const Place& place, const Selector& selector);
  [[nodiscard]] const Entry* loading(const Selector& selector) const;

  // ---- begin.cpp, load.cpp: the right to load ----
  Result<Verdict> decide(Session& session, const BeginRequest& wanted, const Now& now);
  Result<Granted> grant(Session& session, const BeginRequest& wanted, const Now& now);
  [[nodiscard]] Result<Entry*> load_of(SessionId session, EntryId load);
  void end_load(Entry& entry, const Now& now);
  [[nodiscard]] std::vector<Waiter*> unload(Entry& entry);
  void take_over(const std::vector<Waiter*>& waiters, const Now& now);

  // ---- room.cpp: memory of a device ----
  /// Nothing: it would have to wait. Evicts what it takes if that is enough.
  std::optional<Reservation> find_room(RoomWait& wanted, const Now& now);
  [[nodiscard]] Error no_room(const RoomWait& wanted, const Now& now) const;
  /// Something may have become free: answers those who wait for room.
  void make_room(const Now& now);
  [[nodiscard]] std::optional<Time> next_protection_end() const;

  // ---- wait.cpp: requests that wait ----
  template <typename Reply>
  void answer(Waiter& waiter, Reply&& reply);
  void end_wait(Waiter& waiter);
  /// Answers those whose selector may mean something else now. Called when a step is complete, so
  /// that nobody is answered by what is there only in its middle.
  void wake();
  void tell(Waiter& waiter, const std::shared_ptr<const EntryInfo>& load, std::uint64_t rate,
            Time now);
  void tell_all(Entry& load, Time now);
  void drained(Entry& entry);
};

template <typename Reply>
void Tables::answer(Waiter& waiter, Reply&& reply) {
  effects.emplace_back(Answer{waiter.session, waiter.request, std::forward<Reply>(reply)});
  end_wait(waiter);
}

/// Whether a list, an eviction or a wait that selects so means this entry under this name. Looks at
/// everything but the rank.
struct Subject {
  std::string_view name;
  std::string_view form;
  std::string_view device;
  std::uint32_t world = 1;
  std::uint64_t generation = 0;
  const Entry* entry = nullptr;
};
[[nodiscard]] bool matches(const Selector& selector, const Subject& subject);
/// By fingerprint and aliases alone, where they are given.
[[nodiscard]] bool content_matches(const Selector& selector, const Entry& entry);
/// Checks the selector's texts. `empty`: whether it may select everything.
[[nodiscard]] Result<> valid_selector(const Selector& selector, bool may_be_empty);
[[nodiscard]] Result<> valid_aliases(std::span<const std::string> aliases);
[[nodiscard]] Result<> valid_fingerprint(std::string_view text);

/// Until then the entry is not evicted to make room, pins and leases apart.
[[nodiscard]] Time kept_until(const Entry& entry);
/// What is longer than kMaxKeepAlive is for ever, so that adding it never overflows.
[[nodiscard]] std::chrono::nanoseconds valid_keep_alive(std::chrono::nanoseconds time);

/// For messages: `"x"`, `"x@3"`, `"@3f"`, `a checkpoint of 3 aliases`.
[[nodiscard]] std::string describe(const Selector& selector);
/// "3.2 GiB of 15.0 GiB loaded"
[[nodiscard]] std::string how_far(const Entry& load);

}  // namespace wc::catalog
