// The reference model's room: who waits for memory, who may be evicted for it, and who is. Groups
// are found by spreading over all sets until nothing is added.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "catalog/reference_state.hpp"

namespace wc::catalog {

class RoomModel : public ModelState {
 public:
  static constexpr std::uint64_t kProtectionS = 30;

  std::uint64_t used() {
    std::uint64_t sum = releasing;
    for (const MEntry& e : entries) sum += e.bytes;
    return sum;
  }
  bool waits_for_room(int load) {
    return std::ranges::any_of(
        waits, [&](const MWait& w) { return w.kind == MWait::room && w.behind == load; });
  }
  void use(int id) { entry(id)->used = now; }

  // "ok", "wait", or the name of a code.
  std::string reserve(std::uint64_t session, std::uint64_t request, int load, std::uint64_t bytes,
                      bool patient) {
    MWait w{session, request, MWait::room, {}, load, {}, {}};
    w.bytes = bytes;
    const bool at_once = missing(w) == 0 && bytes <= budget - std::min(budget, used());
    if (!at_once && waits_of(session) >= kWaits) return "exhausted";
    if (find_room(w)) return "ok";
    const bool hopeless = entry(load)->bytes + bytes > budget;
    if (!w.promised && (!patient || hopeless)) return "exhausted";
    waits.push_back(w);
    return "wait";
  }
  void make_room() {
    for (const bool promised : {true, false}) {
      std::vector<std::pair<std::uint64_t, std::uint64_t>> waiting;
      for (const MWait& w : waits) {
        if (w.kind == MWait::room) waiting.emplace_back(w.session, w.request);
      }
      for (const auto& key : waiting) {
        const auto at = std::ranges::find_if(
            waits, [&](const MWait& w) { return std::pair(w.session, w.request) == key; });
        if (at == waits.end() || at->promised != promised) continue;
        MWait w = *at;
        const bool found = find_room(w);
        std::erase_if(waits, [&](const MWait& each) {
          return found && std::pair(each.session, each.request) == key;
        });
        for (MWait& each : waits) {
          if (std::pair(each.session, each.request) == key) each.promised = w.promised;
        }
        if (found) answers.push_back({w.session, w.request, "reserved"});
      }
    }
  }

 private:
  std::uint64_t missing(const MWait& wanted) {
    std::uint64_t taken = used() - releasing;
    for (const MWait& w : waits) {
      const bool same = w.session == wanted.session && w.request == wanted.request;
      if (w.kind == MWait::room && w.promised && !same) taken += w.bytes;
    }
    const std::uint64_t left = budget - std::min(budget, taken);
    return wanted.bytes - std::min(wanted.bytes, left);
  }
  bool may_go(int id, const Wanted& load) {
    const MEntry& e = *entry(id);
    if (leases_on(id) != 0 || e.pinned || e.keep == UINT64_MAX) return false;
    if (std::max(e.used + e.keep, e.guarded) > now) return false;
    return std::ranges::none_of(sets, [&](const MSet& s) {
      const bool in = s.status != gone && std::ranges::find(s.members, id) != s.members.end();
      const bool replaced = s.name == load.name && s.members.size() == load.world;
      return in && (s.status == pending || replaced);
    });
  }
  std::set<int> group_of(int id) {
    std::set<int> group = {id};
    for (std::size_t before = 0; before != group.size();) {
      before = group.size();
      for (const MSet& s : sets) {
        const bool in = s.status != gone && std::ranges::any_of(s.members, [&](int member) {
                          return group.contains(member);
                        });
        for (int member : s.members) {
          if (in && member != 0) group.insert(member);
        }
      }
    }
    return group;
  }
  bool find_room(MWait& w) {
    if (const std::uint64_t lacking = w.promised ? 0 : missing(w); lacking != 0) {
      struct Choice {
        std::uint64_t used = 0, bytes = 0;
        std::set<int> group;
      };
      std::vector<Choice> choices;
      for (const MEntry& e : entries) {
        if (e.loading) continue;
        Choice c;
        c.group = group_of(e.id);
        if (*c.group.begin() != e.id) continue;
        bool may = true;
        for (int id : c.group) {
          may = may && may_go(id, entry(w.behind)->wanted);
          c.used = std::max(c.used, entry(id)->used);
          c.bytes += entry(id)->bytes;
        }
        if (may) choices.push_back(c);
      }
      std::ranges::sort(choices, [&](const Choice& a, const Choice& b) {
        return std::pair(a.used, *a.group.begin()) < std::pair(b.used, *b.group.begin());
      });
      std::uint64_t sum = 0;
      std::size_t count = 0;
      while (count < choices.size() && sum < lacking) sum += choices[count++].bytes;
      if (sum < lacking) return false;
      choices.resize(count);
      for (std::size_t at = count; at-- > 0;) {
        if (sum - choices[at].bytes < lacking) continue;
        sum -= choices[at].bytes;
        choices.erase(choices.begin() + static_cast<std::ptrdiff_t>(at));
      }
      for (const Choice& c : choices) {
        for (MSet& s : sets) {
          const bool in =
              std::ranges::any_of(s.members, [&](int id) { return c.group.contains(id); });
          if (in) s.status = gone;
        }
      }
      sweep();
      wake();
    }
    w.promised = true;
    if (w.bytes > budget - std::min(budget, used())) return false;
    entry(w.behind)->bytes += w.bytes;
    return true;
  }
};

}  // namespace wc::catalog
