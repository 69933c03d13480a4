// What a selector means: the candidates under the name, fingerprint or alias, narrowed down by
// form, world, rank and device until one is left, or an answer that lists what there is.
#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include "catalog/limits.hpp"
#include "catalog/tables.hpp"
#include "manifest/selector.hpp"

namespace wc::catalog {
namespace {

using Places = std::vector<Place>;

Set* generation_of(const Line& line, std::uint64_t generation) {
  if (generation == 0) return line.current;
  if (line.current != nullptr && line.current->generation == generation) return line.current;
  const auto at = std::ranges::find(line.old, generation, &Set::generation);
  return at == line.old.end() ? nullptr : *at;
}

Places named(const Tables& tables, const Selector& selector) {
  Places places;
  const auto name = tables.names.find(selector.name);
  if (name == tables.names.end()) return places;
  for (const auto& line : name->second.lines) {
    Set* set = generation_of(*line, selector.generation);
    if (set != nullptr) places.push_back({set, selector.rank});
  }
  return places;
}

void add_places(const Entry& entry, Places& places) {
  if (entry.load) return;
  for (const Place& place : entry.places) {
    if (place.set->attachable()) places.push_back(place);
  }
}

Result<Places> with_prefix(const Tables& tables, std::string_view prefix) {
  Places places;
  std::string_view first;
  for (auto at = tables.content.from(prefix);
       at != tables.content.end() && at->first.fingerprint.starts_with(prefix); ++at) {
    const std::size_t before = places.size();
    add_places(*at->second, places);
    if (places.size() == before) continue;
    if (!first.empty() && first != at->first.fingerprint)
      return fail(Code::invalid_argument, "\"@{}\" is not unique: it begins {} and {}", prefix,
                  first, at->first.fingerprint);
    first = at->first.fingerprint;
  }
  return places;
}

Places known_by(const Tables& tables, const Selector& selector) {
  Places places;
  for (const std::string& alias : selector.aliases) {
    for (const Entry* entry : tables.content.known_by(alias)) add_places(*entry, places);
    if (!places.empty()) break;
  }
  return places;
}

/// One property that a selector may ask for.
struct Axis {
  std::string_view what;
  std::string_view plural;
  std::string wanted;
  std::string_view preferred;
  std::string (*of)(const Tables& tables, const Place& place);
};

std::string listed(const std::set<std::string>& values) {
  constexpr std::size_t kShown = 8;
  constexpr std::size_t kShownBytes = 96;
  std::string text;
  std::size_t shown = 0;
  for (const std::string& value : values) {
    if (shown == kShown) return text + format(" and {} more", values.size() - kShown);
    text += format("{}\"{}{}\"", shown++ == 0 ? "" : ", ", value.substr(0, kShownBytes),
                   value.size() > kShownBytes ? "..." : "");
  }
  return text;
}

Result<> narrow(const Tables& tables, const Selector& selector, Places& places, const Axis& axis) {
  if (axis.wanted.empty() && places.size() == 1) return {};
  std::set<std::string> values;
  for (const Place& place : places) values.insert(axis.of(tables, place));
  std::string wanted = axis.wanted;
  if (wanted.empty() && values.size() == 1) return {};
  if (wanted.empty()) wanted = axis.preferred;
  if (wanted.empty() || (axis.wanted.empty() && !values.contains(wanted)))
    return fail(Code::invalid_argument, "{} has several {}: {}; choose one", describe(selector),
                axis.plural, listed(values));
  if (!values.contains(wanted))
    return fail(Code::not_found, "{} has no {} {}; there is {}", describe(selector), axis.what,
                listed({wanted}), listed(values));
  std::erase_if(places, [&](const Place& place) { return axis.of(tables, place) != wanted; });
  return {};
}

Result<> narrow_rank(const Selector& selector, Places& places) {
  const bool named = !selector.name.empty();
  if (!named && selector.aliases.empty() && selector.world == 0) return {};
  const std::uint32_t world = places.front().set->world();
  std::erase_if(places, [&](const Place& place) {
    return named ? selector.rank >= place.set->world() : selector.rank != place.rank;
  });
  if (!places.empty()) return {};
  if (selector.rank >= world)
    return fail(Code::invalid_argument, "{} has no rank {}: its world is {}", describe(selector),
                selector.rank, world);
  return fail(Code::not_found, "{} has no rank {} here", describe(selector), selector.rank);
}

Result<Place> choose(const Tables& tables, const Selector& selector, Places places) {
  TRY(narrow(tables, selector, places,
             {"form", "forms", selector.form, *tables.raw,
              [](const Tables&, const Place& place) { return *place.set->form; }}));
  TRY(narrow(
      tables, selector, places,
      {"world of",
       "worlds",
       selector.world == 0 ? "" : std::to_string(selector.world),
       {},
       [](const Tables&, const Place& place) { return std::to_string(place.set->world()); }}));
  TRY(narrow_rank(selector, places));
  TRY(narrow(tables, selector, places,
             {"device", "devices", selector.device, {}, [](const Tables& all, const Place& place) {
                return all.devices[place.entry().device].device;
              }}));
  // One content under several names, generations or ranks: the latest, a current one and the lowest
  // rank first.
  return *std::ranges::max_element(places, {}, [](const Place& place) {
    return std::tuple(place.set->status == Set::Status::current, place.set->switched,
                      kMaxWorld - place.rank);
  });
}

Result<Place> find(const Tables& tables, const Selector& selector) {
  Places places;
  if (!selector.name.empty()) {
    places = named(tables, selector);
  } else if (!selector.fingerprint.empty()) {
    places = TRY(with_prefix(tables, selector.fingerprint));
  } else {
    places = known_by(tables, selector);
  }
  if (places.empty()) return fail(Code::not_found, "there is no {}", describe(selector));
  Place place = TRY(choose(tables, selector, std::move(places)));
  const Entry& entry = place.entry();
  if (!content_matches(selector, entry))
    return fail(Code::mismatch, "{} is other content than asked for: its fingerprint is {}{}{}",
                describe(selector), entry.fingerprint, selector.fingerprint.empty() ? "" : ", not ",
                selector.fingerprint);
  return place;
}

// An incomplete set that the selector means.
const Set* preparing(const Tables& tables, const Selector& selector) {
  if (selector.generation != 0) return nullptr;
  const auto meant = [&](const Set* set) {
    return set != nullptr && (selector.form.empty() || selector.form == *set->form) &&
           (selector.world == 0 || selector.world == set->world());
  };
  if (const auto name = tables.names.find(selector.name); name != tables.names.end()) {
    for (const auto& line : name->second.lines) {
      if (meant(line->pending)) return line->pending;
    }
  }
  if (!selector.name.empty()) return nullptr;
  const auto pending_of = [&](const Entry& entry) -> const Set* {
    for (const Place& place : entry.places) {
      if (place.set->status == Set::Status::pending && meant(place.set)) return place.set;
    }
    return nullptr;
  };
  const std::string& prefix = selector.fingerprint;
  for (auto at = tables.content.from(prefix);
       !prefix.empty() && at != tables.content.end() && at->first.fingerprint.starts_with(prefix);
       ++at) {
    if (const Set* set = pending_of(*at->second)) return set;
  }
  for (const std::string& alias : selector.aliases) {
    for (const Entry* entry : tables.content.known_by(alias)) {
      if (const Set* set = pending_of(*entry)) return set;
    }
  }
  return nullptr;
}

/// How often each letter is in a text: texts that differ more there than edits could undo are not
/// near, and need not be compared.
class Letters {
 public:
  explicit Letters(std::string_view text) {
    for (const char letter : text) ++counts_[static_cast<unsigned char>(letter) % counts_.size()];
  }
  [[nodiscard]] std::size_t edits_at_least(const Letters& other) const {
    std::size_t more = 0;
    std::size_t fewer = 0;
    for (std::size_t at = 0; at < counts_.size(); ++at) {
      if (counts_[at] > other.counts_[at]) more += counts_[at] - other.counts_[at];
      if (counts_[at] < other.counts_[at]) fewer += other.counts_[at] - counts_[at];
    }
    return std::max(more, fewer);
  }

 private:
  std::array<std::uint16_t, 32> counts_{};
};

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('/') + 1); }

// Names are compared as long as that is quick: a miss must not hold everybody else up.
std::string near_names(const Tables& tables, std::string_view name) {
  std::size_t budget = 400'000;  // characters compared with each other
  const std::size_t allowed = std::max<std::size_t>(2, name.size() / 3);
  const Letters whole(name);
  const Letters part(last_part(name));
  std::vector<std::string> known;
  for (const auto& [text, record] : tables.names) {
    if (whole.edits_at_least(Letters(text)) > allowed &&
        part.edits_at_least(Letters(last_part(text))) > allowed)
      continue;
    const std::size_t cost = text.size() * name.size() * 2;
    if (cost > budget) break;
    budget -= cost;
    known.push_back(text);
  }
  std::string near;
  for (const std::string& each : manifest::nearest(name, known)) {
    near += format("{}\"{}\"", near.empty() ? ": did you mean " : " or ", each);
  }
  return near;
}

}  // namespace

const Entry* Tables::loading(const Selector& selector) const {
  if (selector.generation != 0) return nullptr;
  const auto meant = [&](const Entry& entry) {
    return entry.load &&
           (selector.rank == entry.rank || (selector.name.empty() && selector.world == 0)) &&
           matches(selector, {*entry.load->line->name->text, *entry.form,
                              devices[entry.device].device, entry.world, 0, &entry});
  };
  if (const auto name = names.find(selector.name); name != names.end()) {
    for (const auto& line : name->second.lines) {
      const auto at = std::ranges::find_if(line->loads, [&](Entry* each) { return meant(*each); });
      if (at != line->loads.end()) return *at;
    }
  }
  if (!selector.name.empty()) return nullptr;
  const std::string& prefix = selector.fingerprint;
  for (auto at = content.from(prefix);
       !prefix.empty() && at != content.end() && at->first.fingerprint.starts_with(prefix); ++at) {
    if (meant(*at->second)) return at->second;
  }
  for (const std::string& alias : selector.aliases) {
    for (const Entry* entry : content.known_by(alias)) {
      if (meant(*entry)) return entry;
    }
  }
  return nullptr;
}

Result<Place> Tables::resolve(const Selector& selector) const {
  Result<Place> place = find(*this, selector);
  if (place || place.error().code != Code::not_found) return place;
  if (const Entry* entry = loading(selector))
    return fail(Code::busy, "{} is being loaded: {}", describe(selector), how_far(*entry));
  if (const Set* set = preparing(*this, selector)) {
    const auto ready = std::ranges::count_if(
        set->members, [](const Member& member) { return member.entry != nullptr; });
    return fail(Code::busy, "{} is being prepared: {} of its {} ranks are there",
                describe(selector), ready, set->world());
  }
  return place;
}

Result<Place> Tables::resolve_or_explain(const Selector& selector) const {
  Result<Place> place = resolve(selector);
  if (place || place.error().code != Code::not_found || names.contains(selector.name)) return place;
  Error error = std::move(place).error();
  error.message += near_names(*this, selector.name);
  return Failure(std::move(error));
}

Result<> Tables::takes_leases(const Place& place, const Selector& selector) {
  if (const std::string& failure = place.entry().failure; !failure.empty())
    return fail(Code::corrupt, "{} has failed, and must be loaded again: {}", describe(selector),
                failure);
  if (!place.entry().draining) return {};
  return fail(Code::busy, "{} is draining: it takes no new leases", describe(selector));
}

Result<Place> Tables::attachable(const Selector& selector) const {
  Place place = TRY(resolve(selector));
  TRY(takes_leases(place, selector));
  return place;
}

}  // namespace wc::catalog
