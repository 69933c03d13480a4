// The state of the reference model, and the rules that hold between its parts: who conflicts, what
// a selector means, and what nobody holds any more.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace wc::catalog {

struct Wanted {
  std::string name;
  std::uint32_t rank = 0, world = 1;
  unsigned content = 0;
  bool by_fingerprint = false, replace = false, wait = false;
};
struct Chosen {  // a selector: by name with the world, or by fingerprint
  std::string name;
  std::uint64_t generation = 0;
  std::uint32_t rank = 0, world = 1;
  unsigned content = 0;
};

class ModelState {
 public:
  static constexpr std::size_t kWaits = 64;
  enum Status { pending, current, old, gone };
  struct MEntry {
    int id;
    Wanted wanted;
    std::uint64_t session;
    bool loading = true, sealing = false, known_fingerprint = false, known_alias = false;
    std::uint64_t fingerprint_order = 0, alias_order = 0, bytes = 0;
    bool pinned = false, draining = false;
    std::uint64_t used = 0, guarded = 0, keep = 0;  // in seconds
  };
  struct MSet {
    std::string name;
    std::vector<int> members;
    std::uint64_t generation = 0, switched = 0;
    Status status = pending;
    int id = 0;
  };
  struct MLease {
    std::uint64_t session;
    int set;
    std::uint32_t rank;
    int id;
  };
  struct MWait {
    std::uint64_t session, request;
    enum Kind { begin, entry, drain, room } kind;
    Wanted wanted;
    int behind;
    Chosen chosen;
    std::vector<int> drained;
    std::uint64_t deadline = UINT64_MAX, bytes = 0;
    bool promised = false;
  };
  struct MAnswer {
    std::uint64_t session, request;
    std::string text;
    int load = 0;
  };
  struct MPlace {
    Code error = Code::ok;
    int set = 0;
    std::uint32_t rank = 0;
  };

  std::vector<MEntry> entries;
  std::vector<MSet> sets;
  std::vector<MLease> leases;
  std::vector<MWait> waits;
  std::map<std::string, std::uint64_t> counters;
  std::uint64_t budget = 0, releasing = 0, now = 1, switches = 0, order = 0;
  int next = 1;
  // What the last step should have led to.
  std::vector<MAnswer> answers;
  std::vector<int> released, cancelled;
  int granted = 0;

  MEntry* entry(int id) { return find(entries, id); }
  MSet* set(int id) { return find(sets, id); }
  int entry_at(const MPlace& at) { return set(at.set)->members[at.rank]; }
  std::uint64_t leases_on(int id) {
    return count(leases, [&](const MLease& l) { return set(l.set)->members[l.rank] == id; });
  }
  std::uint64_t waits_of(std::uint64_t session) {
    return count(waits, [&](const MWait& w) { return w.session == session; });
  }

  MPlace resolve(const Chosen& c) {
    MPlace best;
    best.error = Code::not_found;
    bool several = false, busy = false;
    std::uint32_t world = 0;
    const auto better = [&](const MSet& s, std::uint32_t rank) {
      const MSet* had = best.error == Code::ok ? set(best.set) : nullptr;
      several = several || (world != 0 && world != s.members.size());
      world = static_cast<std::uint32_t>(s.members.size());
      if (had == nullptr || std::pair(s.status == current, s.switched) >
                                std::pair(had->status == current, had->switched))
        best = {Code::ok, s.id, rank};
    };
    for (const MSet& s : sets) {
      const bool attachable = s.status == current || s.status == old;
      if (!c.name.empty()) {
        if (s.name != c.name || s.members.size() != c.world) continue;
        busy = busy || (c.generation == 0 && s.status == pending);
        if (c.generation == 0 ? s.status == current : attachable && s.generation == c.generation)
          better(s, c.rank);
        continue;
      }
      for (std::uint32_t rank = 0; rank < s.members.size(); ++rank) {
        if (s.members[rank] == 0 || entry(s.members[rank])->wanted.content != c.content) continue;
        busy = busy || s.status == pending;
        if (attachable) better(s, rank);
      }
    }
    for (const MEntry& e : entries) {
      if (!e.loading || c.generation != 0) continue;
      busy = busy || (c.name.empty() ? e.known_fingerprint && e.wanted.content == c.content
                                     : e.wanted.name == c.name && e.wanted.world == c.world &&
                                           e.wanted.rank == c.rank);
    }
    if (several) best.error = Code::invalid_argument;
    if (best.error == Code::not_found && busy) best.error = Code::busy;
    return best;
  }
  MPlace attachable(const Chosen& c) {
    MPlace at = resolve(c);
    if (at.error == Code::ok && entry(entry_at(at))->draining) at.error = Code::busy;
    return at;
  }

 protected:
  template <typename T>
  static T* find(std::vector<T>& all, int id) {
    const auto at = std::ranges::find(all, id, &T::id);
    return at == all.end() ? nullptr : &*at;
  }
  template <typename T, typename F>
  static std::uint64_t count(const std::vector<T>& all, F&& f) {
    return static_cast<std::uint64_t>(std::ranges::count_if(all, f));
  }
  bool found(const MEntry& e) {
    return std::ranges::any_of(sets, [&](const MSet& s) {
      return s.status != gone && std::ranges::find(s.members, e.id) != s.members.end();
    });
  }
  MEntry* content_of(const Wanted& w, bool loading) {
    MEntry* first = nullptr;
    for (MEntry& e : entries) {
      if (e.loading != loading || e.wanted.content != w.content || (!loading && !found(e)))
        continue;
      const bool fits = w.by_fingerprint
                            ? e.known_fingerprint
                            : e.known_alias && e.wanted.rank == w.rank && e.wanted.world == w.world;
      const auto rank = w.by_fingerprint ? &MEntry::fingerprint_order : &MEntry::alias_order;
      if (fits && (first == nullptr || e.*rank < first->*rank)) first = &e;
    }
    return first;
  }
  MSet* line(const Wanted& w, Status status) {
    for (MSet& s : sets) {
      if (s.name == w.name && s.members.size() == w.world && s.status == status) return &s;
    }
    return nullptr;
  }
  bool conflicts(const Wanted& w) {
    if (w.replace) return false;
    for (const Status status : {current, pending}) {
      const MSet* s = line(w, status);
      const int has = s == nullptr ? 0 : s->members[w.rank];
      if (has != 0 && entry(has)->wanted.content != w.content) return true;
    }
    return false;
  }
  MPlace adopt(const Wanted& w, int id) {
    for (const Status status : {current, pending}) {
      const MSet* s = line(w, status);
      if (s != nullptr && s->members[w.rank] == id) return {Code::ok, s->id, w.rank};
    }
    if (conflicts(w)) return {Code::already_exists, 0, 0};
    if (line(w, pending) == nullptr) {
      sets.push_back({w.name, std::vector<int>(w.world), 0, 0, pending, next++});
    }
    MSet* s = line(w, pending);
    s->members[w.rank] = id;
    const int at = s->id;
    if (std::ranges::find(s->members, 0) == s->members.end()) {
      if (MSet* former = line(w, current)) former->status = old;
      s->status = current;
      s->generation = ++counters[w.name];
      s->switched = ++switches;
    }
    sweep();
    wake();
    return {Code::ok, at, w.rank};
  }
  void erase_entry(int id) {
    const MEntry e = *entry(id);
    if (e.bytes != 0) released.push_back(id);
    releasing += e.bytes;
    std::erase_if(entries, [&](const MEntry& each) { return each.id == id; });
  }
  bool leased(const MSet& s, std::uint32_t rank) {
    return std::ranges::any_of(leases,
                               [&](const MLease& l) { return l.set == s.id && l.rank == rank; });
  }
  bool current_somewhere(int id) {
    return std::ranges::any_of(sets, [&](const MSet& s) {
      return s.status == current && std::ranges::find(s.members, id) != s.members.end();
    });
  }
  // Everything that nobody holds any more goes.
  void sweep() {
    for (MSet& s : sets) {
      bool kept = s.status != old;
      for (std::uint32_t rank = 0; rank < s.members.size(); ++rank) {
        const int id = s.members[rank];
        kept = kept || leased(s, rank) || (entry(id)->pinned && !current_somewhere(id));
      }
      if (!kept) s.status = gone;
    }
    for (MSet& s : sets) {
      for (std::uint32_t rank = 0; s.status == gone && rank < s.members.size(); ++rank) {
        if (!leased(s, rank)) s.members[rank] = 0;
      }
    }
    std::erase_if(sets, [](const MSet& s) {
      return s.status == gone && std::ranges::count(s.members, 0) == std::ssize(s.members);
    });
    std::vector<int> unheld;
    for (const MEntry& e : entries) {
      const bool held = std::ranges::any_of(sets, [&](const MSet& s) {
        return std::ranges::find(s.members, e.id) != s.members.end();
      });
      if (!e.loading && !held) unheld.push_back(e.id);
    }
    for (int id : unheld) erase_entry(id);
  }
  void wake() {
    std::erase_if(waits, [&](const MWait& w) {
      if (w.kind != MWait::entry) return false;
      const MPlace at = attachable(w.chosen);
      if (at.error == Code::not_found || at.error == Code::busy) return false;
      answers.push_back({w.session, w.request,
                         at.error == Code::ok ? format("entry {}", set(at.set)->generation)
                                              : std::string(name_of(at.error))});
      return true;
    });
  }
};

}  // namespace wc::catalog
