// The right to load: found to be needless, given, or waited for; and what happens to those who wait
// when a load ends.
#include <algorithm>

#include "base/units.hpp"
#include "catalog/catalog.hpp"
#include "catalog/limits.hpp"
#include "catalog/tables.hpp"
#include "manifest/selector.hpp"

namespace wc::catalog {
namespace {

Result<> valid(const BeginRequest& wanted) {
  TRY(manifest::valid_name(wanted.name));
  if (wanted.form.size() > kMaxFormBytes || wanted.source.size() > kMaxSourceBytes ||
      wanted.structure.size() > kMaxDigestBytes)
    return fail(Code::invalid_argument, "a form has at most {} bytes, a source {}, a structure {}",
                kMaxFormBytes, kMaxSourceBytes, kMaxDigestBytes);
  if (wanted.world == 0 || wanted.world > kMaxWorld || wanted.rank >= wanted.world)
    return fail(Code::invalid_argument, "rank {} of {}: a world has 1 to {} ranks, from 0 on",
                wanted.rank, wanted.world, kMaxWorld);
  if (!wanted.fingerprint.empty()) TRY(valid_fingerprint(wanted.fingerprint));
  return valid_aliases(wanted.aliases);
}

LineKey line_of(const Tables& tables, const BeginRequest& wanted) {
  return {wanted.name, wanted.form, wanted.world, tables.find_device(wanted.device)};
}

// A fingerprint decides; without one the aliases do, among what is loaded in the same way.
template <typename Suitable>
Entry* find_content(const Tables& tables, const BeginRequest& wanted, Suitable&& suitable) {
  const std::uint16_t device = tables.find_device(wanted.device);
  if (!wanted.fingerprint.empty()) {
    const auto [begin, end] = tables.content.with(wanted.fingerprint, device);
    for (auto at = begin; at != end; ++at) {
      if (suitable(*at->second)) return at->second;
    }
  }
  for (const std::string& alias : wanted.aliases) {
    for (Entry* entry : tables.content.known_by(alias)) {
      const bool alike = entry->device == device && entry->rank == wanted.rank &&
                         entry->world == wanted.world && *entry->form == wanted.form;
      const bool other = !entry->fingerprint.empty() && !wanted.fingerprint.empty() &&
                         entry->fingerprint != wanted.fingerprint;
      if (alike && !other && suitable(*entry)) return entry;
    }
  }
  return nullptr;
}

}  // namespace

Result<Tables::Verdict> Tables::decide(Session& by, const BeginRequest& wanted, const Now& now) {
  const Claim claim{line_of(*this, wanted), wanted.rank, wanted.replace};
  const auto resident = [&] {
    return find_content(*this, wanted, [](const Entry& e) { return !e.load; });
  };
  Entry* known = resident();
  for (; known != nullptr && !known->failure.empty(); known = resident()) discard(*known);
  if (known != nullptr) {
    if (wanted.address != 0 && wanted.address != known->address)
      return fail(Code::mismatch,
                  "\"{}\" is resident at {}, not at the address {:#x}: evict it, or do without",
                  wanted.name,
                  known->address == 0 ? "any address" : format("{:#x}", known->address),
                  wanted.address);
    if (known->draining)
      return fail(Code::busy, "\"{}\" is draining: it takes no new leases", wanted.name);
    const Place place = TRY(adopt(claim, *known));
    known->keep_alive = std::max(known->keep_alive, wanted.keep_alive);
    use(*known, now);
    return Decision(Resident{info(place)});
  }
  if (Entry* load = find_content(*this, wanted, [](const Entry& e) { return e.load != nullptr; }))
    return load;
  TRY(free_of_other_content(claim, {wanted.fingerprint, wanted.structure, {}}));
  if (const Line* line = find_line(claim.line); line != nullptr) {
    if (Entry* load = line->load_of(wanted.rank)) return load;
  }
  const Granted granted = TRY(grant(by, wanted, now));
  return Decision(granted);
}

Result<Granted> Tables::grant(Session& by, const BeginRequest& wanted, const Now& now) {
  if (by.loads.size() >= kMaxLoadsOfSession)
    return fail(Code::exhausted, "this connection loads {} entries already", kMaxLoadsOfSession);
  if (entries.size() + releasing.size() >= kMaxEntries)
    return fail(Code::exhausted, "{} entries exist already", format_count(kMaxEntries));
  if (sets.size() + loads.size() >= kMaxSets)
    return fail(Code::exhausted, "{} names and generations exist already", format_count(kMaxSets));
  if (content.alias_count() + wanted.aliases.size() > kMaxAliases)
    return fail(Code::exhausted, "{} aliases exist already", format_count(kMaxAliases));
  const std::uint16_t device = TRY(make_device(wanted.device));
  if (wanted.capacity_bytes != 0 &&
      std::exchange(devices[device].capacity_bytes, wanted.capacity_bytes) != wanted.capacity_bytes)
    ++revision;
  Line* line = TRY(make_line({wanted.name, wanted.form, wanted.world, device}));

  const EntryId id{next_id++};
  Entry& entry = entries[id];
  entry.id = id;
  entry.load = std::make_unique<Load>();
  entry.load->session = by.id;
  entry.load->line = line;
  entry.load->replace = wanted.replace;
  entry.transport = wanted.transport;
  entry.device = device;
  entry.rank = wanted.rank;
  entry.world = wanted.world;
  entry.form = line->form;
  entry.fingerprint = wanted.fingerprint;
  entry.structure = wanted.structure;
  entry.source = wanted.source;
  entry.publisher_uid = wanted.publisher_uid;
  entry.total_bytes = wanted.total_bytes;
  entry.address = wanted.address;
  entry.keep_alive = wanted.keep_alive;
  entry.since_unix_ns = now.unix_ns;
  by.loads.push_back(id);
  line->loads.push_back(&entry);
  loads.emplace(id, &entry);
  content.add_fingerprint(entry);
  content.add_aliases(entry, wanted.aliases);
  return Granted{id};
}

void Tables::take_over(const std::vector<Waiter*>& waiters, const Now& now) {
  for (Waiter* waiter : waiters) std::get<BeginWait>(waiter->what).behind = nullptr;
  for (Waiter* waiter : waiters) {
    BeginWait& wait = std::get<BeginWait>(waiter->what);
    Result<Verdict> verdict = decide(sessions.at(waiter->session), wait.wanted, now);
    if (!verdict) {
      answer(*waiter, std::move(verdict).error());
    } else if (Entry** load = std::get_if<Entry*>(&*verdict)) {
      wait.behind = *load;
      (*load)->load->waiters.push_back(waiter);
    } else {
      std::visit([&](auto& reply) { answer(*waiter, std::move(reply)); },
                 std::get<Decision>(*verdict));
    }
  }
}

Result<std::optional<Decision>> Catalog::begin(SessionId session, RequestId request,
                                               BeginRequest wanted, const Now& now) {
  Tables& t = *tables_;
  Session* by = TRY(t.session(session));
  TRY(valid(wanted));
  if (wanted.form.empty()) wanted.form = *t.raw;
  wanted.keep_alive = valid_keep_alive(wanted.keep_alive);
  if (wanted.wait) TRY(t.waits.room(*by, request));
  Tables::Verdict verdict = TRY(t.decide(*by, wanted, now));
  t.make_room(now);
  if (auto* decision = std::get_if<Decision>(&verdict)) return std::move(*decision);

  Entry& load = *std::get<Entry*>(verdict);
  if (!wanted.wait)
    return fail(Code::busy, "\"{}\" is being loaded: {}", *load.load->line->name->text,
                how_far(load));
  Waiter waiter;
  waiter.session = session;
  waiter.request = request;
  waiter.since = now.steady;
  waiter.deadline = std::min(wanted.deadline.value_or(Time::max()), now.steady + kMaxWait);
  waiter.what = BeginWait{std::move(wanted), &load};
  Waiter& added = t.waits.add(*by, std::move(waiter));
  load.load->waiters.push_back(&added);
  t.tell(added, std::make_shared<const EntryInfo>(t.info(load)), load.load->rate.bytes_per_s(),
         now.steady);
  return std::nullopt;
}

}  // namespace wc::catalog
