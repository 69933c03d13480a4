// Publishing, in two steps: between them the daemon seals and checks, and everything may end.
#include <algorithm>

#include "catalog/catalog.hpp"
#include "catalog/limits.hpp"
#include "catalog/tables.hpp"

namespace wc::catalog {
namespace {

Failure not_loading(EntryId load) {
  return fail(Code::not_found, "load {} has ended", std::to_underlying(load));
}

Entry* resident_with(const Tables& tables, std::string_view fingerprint, std::uint16_t device) {
  const auto [begin, end] = tables.content.with(fingerprint, device);
  const auto at = std::find_if(begin, end, [](const auto& item) { return !item.second->load; });
  return at == end ? nullptr : at->second;
}

std::vector<std::string> texts(const std::vector<const std::string*>& aliases) {
  std::vector<std::string> out;
  out.reserve(aliases.size());
  for (const std::string* alias : aliases) out.push_back(*alias);
  return out;
}

/// Where the load's content is to go; keeps the texts alive while its line may come and go.
struct Destination {
  Text name;
  Text form;
  Claim claim;

  explicit Destination(const Entry& entry) : name(entry.load->line->name->text), form(entry.form) {
    claim.line = {*name, *form, entry.world, entry.device};
    claim.rank = entry.rank;
    claim.replace = entry.load->replace;
  }
};

// From loading to resident, not yet under any name.
void become_resident(Tables& tables, Entry& entry, const Summary& summary, const Now& now) {
  const std::vector<std::string> aliases = texts(entry.aliases);
  tables.content.remove_aliases(entry);
  entry.load.reset();
  tables.content.add_aliases(entry, aliases);
  tables.devices[entry.device].loading_bytes -= entry.bytes;
  tables.devices[entry.device].resident_bytes += entry.bytes;
  entry.tensors = summary.tensors;
  entry.source_digest = summary.source_digest;
  entry.total_bytes = std::max(entry.total_bytes, entry.done_bytes);
  entry.done_bytes = entry.total_bytes;
  entry.since_unix_ns = now.unix_ns;
  tables.use(entry, now);
}

}  // namespace

Result<> Catalog::publish_begin(SessionId session, EntryId load, PublishRequest request) {
  Tables& t = *tables_;
  Entry* loading = TRY(t.load_of(session, load));
  Entry& entry = *loading;
  if (entry.load->sealing)
    return fail(Code::busy, "load {} is being published already", std::to_underlying(load));
  if (entry.load->room != nullptr)
    return fail(Code::busy, "load {} waits for memory", std::to_underlying(load));
  TRY(valid_fingerprint(request.fingerprint));
  TRY(valid_aliases(request.aliases));
  if (entry.segments == 0)
    return fail(Code::invalid_argument, "load {} has reserved nothing", std::to_underlying(load));
  if (!entry.fingerprint.empty() && entry.fingerprint != request.fingerprint)
    return fail(Code::mismatch, "load {} was begun for fingerprint {} and has become {}",
                std::to_underlying(load), entry.fingerprint, request.fingerprint);
  if (t.content.alias_count() + request.aliases.size() > kMaxAliases)
    return fail(Code::exhausted, "{} aliases exist already", kMaxAliases);
  t.content.remove_fingerprint(entry);
  entry.fingerprint = std::move(request.fingerprint);
  t.content.add_fingerprint(entry);
  t.content.add_aliases(entry, request.aliases);
  entry.load->sealing = true;
  return {};
}

Result<Publication> Catalog::publish_done(EntryId load, const Summary& summary, const Now& now) {
  Tables& t = *tables_;
  const auto at = t.loads.find(load);
  if (at == t.loads.end() || !at->second->load->sealing) return not_loading(load);
  Entry& entry = *at->second;
  if (summary.fingerprint != entry.fingerprint) {
    const std::string said = entry.fingerprint;
    t.end_load(entry, now);
    t.make_room(now);
    return fail(Code::mismatch, "the manifest's fingerprint is {}, published as {}",
                summary.fingerprint, said);
  }
  const Destination destination(entry);
  Entry* resident = resident_with(t, entry.fingerprint, entry.device);
  if (resident != nullptr && !resident->failure.empty()) {
    t.discard(*resident);
    resident = nullptr;
  }
  const std::vector<std::string> aliases = texts(entry.aliases);
  const std::vector<Waiter*> waiters = t.unload(entry);
  if (resident != nullptr) {
    resident->keep_alive = std::max(resident->keep_alive, entry.keep_alive);
    t.use(*resident, now);
    t.release(entry);
    t.content.add_aliases(*resident, aliases);
    ++t.revision;
    if (resident->source_digest.empty()) resident->source_digest = summary.source_digest;
  } else {
    become_resident(t, entry, summary, now);
    ++t.revision;
  }
  Result<Publication> reply;
  if (Result<Place> place = t.adopt(destination.claim, resident != nullptr ? *resident : entry)) {
    reply->entry = t.info(*place);
    if (resident != nullptr) {
      reply->outcome = Outcome::already_resident;
      t.changed.push_back(destination.name);  // it may be waited for by one of its new aliases
      t.wake();
    } else if (place->set->status == Set::Status::pending) {
      reply->outcome = Outcome::prepared;
    }
  } else {
    reply = Failure(std::move(place).error());
    if (resident == nullptr) t.release(entry);
  }
  if (Line* line = t.find_line(destination.claim.line)) t.tidy(*line);
  t.take_over(waiters, now);
  t.make_room(now);
  return reply;
}

Result<> Catalog::publish_failed(EntryId load, const Now& now) {
  Tables& t = *tables_;
  const auto at = t.loads.find(load);
  if (at == t.loads.end() || !at->second->load->sealing) return not_loading(load);
  t.end_load(*at->second, now);
  t.make_room(now);
  return {};
}

}  // namespace wc::catalog
