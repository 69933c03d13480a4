// Content comes under a name: whether it may, and the place that it gets.
#include <algorithm>
#include <array>

#include "base/units.hpp"
#include "catalog/limits.hpp"
#include "catalog/tables.hpp"

namespace wc::catalog {
namespace {

// As far as is known: fingerprints decide, else structures tell what can't be equal.
bool other_content(const Entry& has, const Content& claimed) {
  if (!has.fingerprint.empty() && !claimed.fingerprint.empty())
    return has.fingerprint != claimed.fingerprint;
  return !has.structure.empty() && !claimed.structure.empty() && has.structure != claimed.structure;
}

bool other_source(const Entry& has, std::string_view digest) {
  return !has.source_digest.empty() && !digest.empty() && has.source_digest != digest;
}

bool has_other_source(const Set& set, std::string_view digest) {
  return std::ranges::any_of(set.members, [&](const Member& member) {
    return member.entry != nullptr && other_source(*member.entry, digest);
  });
}

// What nobody can map keeps no name from other content.
bool has_failed(const Set& set) {
  return std::ranges::any_of(set.members, [](const Member& member) {
    return member.entry != nullptr && !member.entry->failure.empty();
  });
}

// Every member that is there is known to be of this source.
bool of_source(const Set& set, std::string_view digest) {
  return !digest.empty() && std::ranges::all_of(set.members, [&](const Member& member) {
    return member.entry == nullptr || member.entry->source_digest == digest;
  });
}

Failure taken(const Claim& claim, const Set& by, std::uint32_t rank) {
  const bool pending = by.status == Set::Status::pending;
  const Entry* entry = by.members[rank].entry;
  return fail(Code::already_exists,
              "\"{}\" is taken by other content ({}{}{}): replace it, or choose another name",
              claim.line.name, pending ? "being prepared" : format("generation {}", by.generation),
              entry != nullptr ? ", fingerprint " : "", entry != nullptr ? entry->fingerprint : "");
}

}  // namespace

Result<> Tables::free_of_other_content(const Claim& claim, const Content& claimed) {
  const auto name = names.find(claim.line.name);
  if (claim.replace || name == names.end()) return {};
  const Line* own = find_line(claim.line);
  const Set* newest = nullptr;        // under the name
  const Set* newest_alike = nullptr;  // in the same form and world, on whatever device
  for (const auto& line : name->second.lines) {
    const Set* set = line->current;
    if (set == nullptr || has_failed(*set)) continue;
    if (newest == nullptr || set->switched > newest->switched) newest = set;
    if (line->world != claim.line.world || *line->form != claim.line.form) continue;
    if (newest_alike == nullptr || set->switched > newest_alike->switched) newest_alike = set;
  }
  const std::array<const Set*, 3> present = {own != nullptr ? own->current : nullptr,
                                             own != nullptr ? own->pending : nullptr, newest_alike};
  for (const Set* set : present) {
    if (set == nullptr || has_failed(*set)) continue;
    const Entry* has = set->members[claim.rank].entry;
    if (has != nullptr && other_content(*has, claimed)) return taken(claim, *set, claim.rank);
  }
  if (newest != nullptr && has_other_source(*newest, claimed.source_digest))
    return taken(claim, *newest, std::min(claim.rank, newest->world() - 1));
  return {};
}

Result<Place> Tables::adopt(const Claim& claim, Entry& entry) {
  const std::uint32_t rank = claim.rank;
  const Line* known = find_line(claim.line);
  Set* pending = known != nullptr ? known->pending : nullptr;
  if (known != nullptr && known->current != nullptr &&
      known->current->members[rank].entry == &entry) {
    // Where the other ranks of this source are moving, the one that stays goes with them.
    if (pending == nullptr || pending->members[rank].entry != nullptr ||
        !of_source(*pending, entry.source_digest))
      return Place{known->current, rank};
    return put(*pending, rank, entry);
  }
  if (pending != nullptr && pending->members[rank].entry == &entry) return Place{pending, rank};

  TRY(free_of_other_content(claim, {entry.fingerprint, entry.structure, entry.source_digest}));
  const bool mixed = pending != nullptr && has_other_source(*pending, entry.source_digest);
  if (mixed && !claim.replace) {
    return fail(Code::already_exists,
                "\"{}\" is being prepared from another source by other ranks: evict it, or replace",
                claim.line.name);
  }
  if (entry.places.size() >= kMaxPlacesOfEntry) {
    return fail(Code::exhausted, "{} names and ranks have the content of \"{}\" already",
                format_count(kMaxPlacesOfEntry), claim.line.name);
  }
  Line* line = TRY(make_line(claim.line));
  auto made = make_pending(*line);
  if (!made) {
    tidy(*line);
    return Failure(std::move(made).error());
  }
  Set& set = **made;
  for (std::uint32_t each = 0; each < set.world(); ++each) {
    const bool goes = mixed || each == rank;
    if (goes && set.members[each].entry != nullptr) drop(Place{&set, each});
  }
  return put(set, rank, entry);
}

}  // namespace wc::catalog
