#include "catalog/tables.hpp"

#include <algorithm>

#include "base/units.hpp"
#include "catalog/limits.hpp"

namespace wc::catalog {
namespace {

bool is_hex(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

Result<> valid_device(std::string_view name) {
  const bool printable = std::ranges::all_of(name, [](char c) { return c > ' ' && c < '\x7f'; });
  if (name.empty() || name.size() > kMaxDeviceBytes || !printable)
    return fail(Code::invalid_argument, "a device is \"cpu\" or a UUID, at most {} characters",
                kMaxDeviceBytes);
  return {};
}

}  // namespace

void Rate::report(Time at, std::uint64_t done_bytes) {
  if (at_ == Time{} || done_bytes < done_bytes_) {
    at_ = at;
    done_bytes_ = done_bytes;
    return;
  }
  const std::chrono::duration<double> passed = at - at_;
  if (passed < kProgressInterval) return;
  constexpr double kNew = 0.4;
  const double now = static_cast<double>(done_bytes - done_bytes_) / passed.count();
  per_s_ = per_s_ == 0 ? now : per_s_ * (1 - kNew) + now * kNew;
  at_ = at;
  done_bytes_ = done_bytes;
}

Result<Session*> Tables::session(SessionId id) {
  const auto at = sessions.find(id);
  if (at == sessions.end())
    return fail(Code::invalid_argument, "session {} is not open", std::to_underlying(id));
  return &at->second;
}

std::uint16_t Tables::find_device(std::string_view name) const {
  const auto at = std::ranges::find(devices, name, &DeviceStatus::device);
  return at == devices.end() ? kNoDevice : static_cast<std::uint16_t>(at - devices.begin());
}

Result<std::uint16_t> Tables::make_device(std::string_view name) {
  if (const auto known = find_device(name); known != kNoDevice) return known;
  TRY(valid_device(name));
  DeviceStatus fresh;
  fresh.device = name;
  ++revision;
  if (devices.size() < kMaxDevices) {
    devices.push_back(std::move(fresh));
    return static_cast<std::uint16_t>(devices.size() - 1);
  }
  std::vector<bool> used(devices.size());
  for (const auto& [id, entry] : entries) used[entry.device] = true;
  for (std::size_t at = 0; at < devices.size(); ++at) {
    if (used[at] || devices[at].budget_bytes != 0 || devices[at].used_bytes() != 0) continue;
    devices[at] = std::move(fresh);
    return static_cast<std::uint16_t>(at);
  }
  return fail(Code::exhausted, "cannot use \"{}\": {} devices are in use", name, kMaxDevices);
}

EntryInfo Tables::content_info(const Entry& entry) const {
  EntryInfo out;
  out.id = entry.id;
  out.fingerprint = entry.fingerprint;
  out.device = devices[entry.device].device;
  out.source = entry.source;
  out.publisher_uid = entry.publisher_uid;
  out.bytes = entry.bytes;
  out.done_bytes = entry.done_bytes;
  out.total_bytes = entry.total_bytes;
  out.address = entry.address;
  out.since_unix_ns = entry.since_unix_ns;
  out.tensors = entry.tensors;
  out.leases = entry.leases;
  out.segments = entry.segments;
  out.transport = entry.transport;
  out.pinned = entry.pinned;
  out.used_unix_ns = entry.used_unix_ns;
  out.keep_alive = entry.keep_alive;
  if (entry.keep_alive == kForever) {
    out.kept_until_unix_ns = INT64_MAX;
  } else if (const Time end = kept_until(entry); end > entry.used) {
    const std::chrono::nanoseconds more = end - entry.used;
    out.kept_until_unix_ns = entry.used_unix_ns + more.count();
  }
  return out;
}

EntryInfo Tables::info(const Set& set, std::uint32_t rank) const {
  const Entry& entry = *set.members[rank].entry;
  EntryInfo out = content_info(entry);
  out.name = *set.name;
  out.form = *set.form;
  out.generation = set.generation;
  out.rank = rank;
  out.world = set.world();
  switch (set.status) {
    case Set::Status::pending:
      out.state = State::loading;
      break;
    case Set::Status::gone:
      out.state = State::gone;
      break;
    case Set::Status::current:
    case Set::Status::old:
      out.state = entry.draining ? State::draining : State::published;
      if (!entry.failure.empty()) out.state = State::failed;
  }
  return out;
}

EntryInfo Tables::info(const Entry& load) const {
  EntryInfo out = content_info(load);
  out.name = *load.load->line->name->text;
  out.form = *load.form;
  out.rank = load.rank;
  out.world = load.world;
  return out;
}

Text Tables::text_of_form(std::string_view form) const {
  return form == *raw ? raw : std::make_shared<const std::string>(form);
}

Result<> valid_fingerprint(std::string_view text) {
  if (text.size() != kFingerprintDigits || !is_hex(text))
    return fail(Code::invalid_argument, "a fingerprint is {} lowercase hexadecimal digits",
                kFingerprintDigits);
  return {};
}

Result<> valid_aliases(std::span<const std::string> aliases) {
  if (aliases.size() > kMaxAliasesOfEntry)
    return fail(Code::invalid_argument, "{} aliases, at most {} are taken", aliases.size(),
                kMaxAliasesOfEntry);
  for (const std::string& alias : aliases) {
    if (alias.empty() || alias.size() > kMaxAliasBytes)
      return fail(Code::invalid_argument, "an alias of {} bytes, 1 to {} are taken", alias.size(),
                  kMaxAliasBytes);
  }
  return {};
}

Result<> valid_selector(const Selector& selector, bool may_be_empty) {
  const bool empty =
      selector.name.empty() && selector.fingerprint.empty() && selector.aliases.empty();
  if (empty && !may_be_empty)
    return fail(Code::invalid_argument, "a name, a fingerprint or an alias is needed");
  if (selector.generation != 0 && selector.name.empty())
    return fail(Code::invalid_argument, "generation {} of no name", selector.generation);
  if (selector.name.size() > kMaxNameBytes || selector.form.size() > kMaxFormBytes ||
      selector.device.size() > kMaxDeviceBytes)
    return fail(Code::invalid_argument, "a name has at most {} bytes, a form {}, a device {}",
                kMaxNameBytes, kMaxFormBytes, kMaxDeviceBytes);
  const std::string& prefix = selector.fingerprint;
  if (!prefix.empty() &&
      (prefix.size() < kMinPrefixDigits || prefix.size() > kFingerprintDigits || !is_hex(prefix)))
    return fail(Code::invalid_argument,
                "a fingerprint is asked for by {} to {} lowercase hexadecimal digits",
                kMinPrefixDigits, kFingerprintDigits);
  return valid_aliases(selector.aliases);
}

bool content_matches(const Selector& selector, const Entry& entry) {
  if (!entry.fingerprint.starts_with(selector.fingerprint)) return false;
  if (selector.aliases.empty()) return true;
  return std::ranges::any_of(entry.aliases, [&](const std::string* known) {
    return std::ranges::find(selector.aliases, *known) != selector.aliases.end();
  });
}

bool matches(const Selector& selector, const Subject& subject) {
  return (selector.name.empty() || selector.name == subject.name) &&
         (selector.generation == 0 || selector.generation == subject.generation) &&
         (selector.form.empty() || selector.form == subject.form) &&
         (selector.device.empty() || selector.device == subject.device) &&
         (selector.world == 0 || selector.world == subject.world) &&
         content_matches(selector, *subject.entry);
}

std::string describe(const Selector& selector) {
  if (selector.generation != 0) return format("\"{}@{}\"", selector.name, selector.generation);
  if (!selector.name.empty()) return format("\"{}\"", selector.name);
  if (!selector.fingerprint.empty()) return format("\"@{}\"", selector.fingerprint);
  return format("the checkpoint with {} aliases", selector.aliases.size());
}

std::string how_far(const Entry& load) {
  if (load.load && load.load->sealing) return "loaded, being checked";
  if (load.total_bytes == 0) return format("{} loaded", format_bytes(load.done_bytes));
  return format("{} of {} loaded", format_bytes(load.done_bytes), format_bytes(load.total_bytes));
}

}  // namespace wc::catalog
