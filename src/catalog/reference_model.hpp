// The catalog again, without tables: everything is found by looking at everything, and what nobody
// holds is swept up after each step. One device, raw form, no sources. Slow, and short enough to be
// seen right; scenario.hpp plays the same steps on both and compares.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "catalog/reference_room.hpp"

namespace wc::catalog {

class Model : public RoomModel {
 public:
  // "granted", "resident NAME GENERATION", "wait ID", or the name of a code.
  std::string decide(std::uint64_t session, const Wanted& w) {
    if (MEntry* e = content_of(w, false)) {
      if (e->draining) return "busy";
      MPlace at = adopt(w, e->id);
      if (at.error != Code::ok) return std::string(name_of(at.error));
      use(content_of(w, false)->id);
      return format("resident {} {}", w.name, set(at.set)->generation);
    }
    if (MEntry* e = content_of(w, true)) return format("wait {}", e->id);
    if (w.by_fingerprint && conflicts(w)) return "already_exists";
    for (const MEntry& e : entries) {
      if (e.loading && e.wanted.name == w.name && e.wanted.world == w.world &&
          e.wanted.rank == w.rank)
        return format("wait {}", e.id);
    }
    MEntry e{next++, w, session};
    e.known_fingerprint = w.by_fingerprint;
    e.known_alias = !w.by_fingerprint;
    e.fingerprint_order = e.alias_order = ++order;
    entries.push_back(e);
    granted = e.id;
    return "granted";
  }

  std::string begin(std::uint64_t session, std::uint64_t request, const Wanted& w) {
    if (w.wait && waits_of(session) >= kWaits) return "exhausted";
    std::string said = decide(session, w);
    if (said == "granted" || said.starts_with("resident") || said.starts_with("wait")) make_room();
    if (!said.starts_with("wait ")) return said;
    if (!w.wait) return "busy";
    waits.push_back({session, request, MWait::begin, w, std::stoi(said.substr(5)), {}, {}});
    return "wait";
  }

  void end_load(int id, bool release = true) {
    std::vector<MWait> redecide;
    std::erase_if(waits, [&](const MWait& w) {
      const bool mine = w.kind == MWait::room && w.behind == id;
      if (mine) answers.push_back({w.session, w.request, "cancelled"});
      return mine;
    });
    std::erase_if(waits, [&](const MWait& w) {
      const bool mine = w.kind == MWait::begin && w.behind == id;
      if (mine) redecide.push_back(w);
      return mine;
    });
    if (release) erase_entry(id);
    sweep();
    std::vector<MWait> still;
    for (MWait& w : redecide) {
      const std::string said = decide(w.session, w.wanted);
      if (said.starts_with("wait ")) {
        w.behind = std::stoi(said.substr(5));
        waits.push_back(w);
      } else {
        answers.push_back({w.session, w.request, said, said == "granted" ? granted : 0});
      }
      sweep();
    }
  }

  std::string publish_done(int id) {
    MEntry e = *entry(id);
    MEntry* twin = nullptr;
    for (MEntry& each : entries) {
      if (!each.loading && found(each) && each.wanted.content == e.wanted.content) twin = &each;
    }
    const int to = twin != nullptr ? twin->id : id;
    use(to);
    if (twin != nullptr) {
      twin->known_alias = true;
      erase_entry(id);
    } else {
      entry(id)->loading = false;
      entry(id)->sealing = false;
    }
    const MPlace at = adopt(e.wanted, to);
    std::string said(name_of(at.error));
    if (at.error == Code::ok) {
      const MSet& in = *set(at.set);
      said = format("{} {}",
                    twin != nullptr        ? "already_resident"
                    : in.status == pending ? "prepared"
                                           : "loaded",
                    in.generation);
    }
    sweep();
    end_load(id, false);
    make_room();
    return said;
  }

  std::string wait(std::uint64_t session, std::uint64_t request, const Chosen& c) {
    const MPlace at = attachable(c);
    if (at.error == Code::ok) return format("entry {}", set(at.set)->generation);
    const bool over = at.error == Code::not_found && c.generation != 0 &&
                      counters.contains(c.name) && counters[c.name] >= c.generation;
    if (over || (at.error != Code::not_found && at.error != Code::busy))
      return std::string(name_of(at.error));
    if (waits_of(session) >= kWaits) return "exhausted";
    waits.push_back({session, request, MWait::entry, {}, 0, c, {}});
    return "wait";
  }

  std::string evict(const Chosen& c, bool force) {
    std::vector<int> victims, loads;
    std::uint64_t rows = 0, bytes = 0, held = 0;
    bool refused = false;
    for (const MSet& s : sets) {
      if (s.status == gone) continue;
      const bool has = std::ranges::any_of(
          s.members, [&](int id) { return id != 0 && entry(id)->wanted.content == c.content; });
      if (c.name.empty() ? !has
                         : s.name != c.name || (c.generation != 0 && s.generation != c.generation))
        continue;
      victims.push_back(s.id);
      for (int id : s.members) {
        rows += id != 0;
        refused = refused || (id != 0 && entry(id)->pinned);
      }
    }
    for (const MEntry& e : entries) {
      if (!e.loading || c.generation != 0) continue;
      if (c.name.empty() ? !e.known_fingerprint || e.wanted.content != c.content
                         : e.wanted.name != c.name)
        continue;
      loads.push_back(e.id);
      bytes += e.bytes;
      ++rows;
      refused = true;
    }
    if (victims.empty() && loads.empty()) return "not_found";
    if (refused && !force) return "busy";
    std::vector<int> before;
    for (const MEntry& e : entries) {
      if (!e.loading && found(e)) before.push_back(e.id);
    }
    for (int id : victims) set(id)->status = gone;
    for (int id : before) {
      if (found(*entry(id))) continue;
      bytes += entry(id)->bytes;
      held += leases_on(id);
    }
    sweep();
    std::ranges::sort(loads);
    for (int id : loads) {
      cancelled.push_back(id);
      end_load(id);
    }
    wake();
    make_room();
    return format("evicted {} {} {}", rows, bytes, held);
  }

  std::vector<int> meant(const Chosen& c, const MPlace& at) {
    if (c.name.empty()) return {entry_at(at)};
    return set(at.set)->members;
  }
  std::string pin(const Chosen& c, bool pinned) {
    const MPlace at = resolve(c);
    if (at.error != Code::ok) return std::string(name_of(at.error));
    for (int id : meant(c, at)) entry(id)->pinned = pinned;
    sweep();
    wake();
    if (!pinned) make_room();
    return "ok";
  }
  std::string drain(std::uint64_t session, std::uint64_t request, const Chosen& c) {
    const MPlace at = resolve(c);
    if (at.error != Code::ok) return std::string(name_of(at.error));
    std::vector<int> left;
    for (int id : meant(c, at)) {
      if (leases_on(id) != 0) left.push_back(id);
    }
    if (!left.empty() && waits_of(session) >= kWaits) return "exhausted";
    for (int id : meant(c, at)) entry(id)->draining = true;
    if (left.empty()) return "drained";
    waits.push_back({session, request, MWait::drain, {}, 0, c, left});
    return "wait";
  }
  std::string undrain(const Chosen& c) {
    const MPlace at = resolve(c);
    if (at.error != Code::ok) return std::string(name_of(at.error));
    for (int id : meant(c, at)) {
      if (!std::exchange(entry(id)->draining, false)) continue;
      std::erase_if(waits, [&](const MWait& w) {
        const bool mine = std::ranges::find(w.drained, id) != w.drained.end();
        if (mine) answers.push_back({w.session, w.request, "cancelled"});
        return mine;
      });
    }
    wake();
    return "ok";
  }

  std::string keep_alive(const Chosen& c, std::uint64_t keep) {
    const MPlace at = resolve(c);
    if (at.error != Code::ok) return std::string(name_of(at.error));
    for (int id : meant(c, at)) entry(id)->keep = keep;
    make_room();
    return "ok";
  }

  void end_lease(int id, bool died) {
    MLease lease = *find(leases, id);
    MEntry& held = *entry(set(lease.set)->members[lease.rank]);
    held.used = now;
    if (died) held.guarded = std::max(held.guarded, now + kProtectionS);
    std::erase_if(leases, [&](const MLease& l) { return l.id == id; });
    std::erase_if(waits, [&](MWait& w) {
      std::erase_if(w.drained, [&](int each) { return leases_on(each) == 0; });
      const bool done = w.kind == MWait::drain && w.drained.empty();
      if (done) answers.push_back({w.session, w.request, "drained"});
      return done;
    });
    sweep();
    wake();
  }
  void expire() {
    std::erase_if(waits, [&](const MWait& w) {
      if (w.deadline <= now) answers.push_back({w.session, w.request, "timed_out"});
      return w.deadline <= now;
    });
    make_room();
  }
  bool cancel(std::uint64_t session, std::uint64_t request) {
    const bool found = std::erase_if(waits, [&](const MWait& w) {
                         const bool meant = w.session == session && w.request == request;
                         if (meant) answers.push_back({session, request, "cancelled"});
                         return meant;
                       }) != 0;
    make_room();
    return found;
  }
  void close(std::uint64_t session) {
    std::erase_if(waits, [&](const MWait& w) { return w.session == session; });
    std::vector<int> own;
    for (const MEntry& e : entries) {
      if (e.loading && e.session == session) own.push_back(e.id);
    }
    for (int id : own) end_load(id);
    own.clear();
    for (const MLease& l : leases) {
      if (l.session == session) own.push_back(l.id);
    }
    for (int id : own) end_lease(id, true);
    make_room();
  }
};

}  // namespace wc::catalog
