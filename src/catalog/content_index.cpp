#include "catalog/content_index.hpp"

#include <algorithm>

#include "catalog/limits.hpp"

namespace wc::catalog {
namespace {

bool alike(const Entry& a, const Entry& b) {
  return a.device == b.device && a.rank == b.rank && a.world == b.world && *a.form == *b.form;
}

}  // namespace

void ContentIndex::add_fingerprint(Entry& entry) {
  if (!entry.fingerprint.empty())
    fingerprints_.emplace(Key{entry.fingerprint, entry.device}, &entry);
}

void ContentIndex::remove_fingerprint(Entry& entry) {
  auto [at, end] = fingerprints_.equal_range(Key{entry.fingerprint, entry.device});
  at = std::find_if(at, end, [&](const auto& item) { return item.second == &entry; });
  if (at != end) fingerprints_.erase(at);
}

std::pair<ContentIndex::Fingerprints::const_iterator, ContentIndex::Fingerprints::const_iterator>
ContentIndex::with(std::string_view fingerprint, std::uint16_t device) const {
  return fingerprints_.equal_range(Key{fingerprint, device});
}

ContentIndex::Fingerprints::const_iterator ContentIndex::from(std::string_view prefix) const {
  return fingerprints_.lower_bound(Key{prefix, 0});
}

void ContentIndex::Known::add(Entry* entry) {
  if (one_ == nullptr && !several_) {
    one_ = entry;
    return;
  }
  if (!several_) {
    several_ = std::make_unique<std::vector<Entry*>>(1, std::exchange(one_, nullptr));
  }
  several_->push_back(entry);
}

void ContentIndex::Known::remove(Entry* entry) {
  if (one_ == entry) one_ = nullptr;
  if (several_) std::erase(*several_, entry);
}

std::span<Entry* const> ContentIndex::Known::all() const {
  if (several_) return *several_;
  return {&one_, one_ != nullptr ? 1U : 0U};
}

void ContentIndex::add_aliases(Entry& entry, std::span<const std::string> aliases) {
  for (const std::string& alias : aliases) {
    const auto at = aliases_.try_emplace(alias).first;
    const std::span<Entry* const> known = at->second.all();
    if (std::ranges::find(known, &entry) != known.end()) continue;
    const auto former = std::ranges::find_if(
        known, [&](const Entry* other) { return !other->load && alike(*other, entry); });
    if (!entry.load && former != known.end()) {
      Entry* loses = *former;
      std::erase(loses->aliases, &at->first);
      at->second.remove(loses);
      --alias_count_;
    }
    at->second.add(&entry);
    entry.aliases.push_back(&at->first);
    ++alias_count_;
    if (entry.aliases.size() > kMaxAliasesOfEntry) drop_alias(entry, 0);
  }
}

void ContentIndex::drop_alias(Entry& entry, std::size_t index) {
  const auto at = aliases_.find(*entry.aliases[index]);
  entry.aliases.erase(entry.aliases.begin() + static_cast<std::ptrdiff_t>(index));
  at->second.remove(&entry);
  --alias_count_;
  if (at->second.all().empty()) aliases_.erase(at);
}

void ContentIndex::remove_aliases(Entry& entry) {
  while (!entry.aliases.empty()) drop_alias(entry, entry.aliases.size() - 1);
}

std::span<Entry* const> ContentIndex::known_by(std::string_view alias) const {
  const auto at = aliases_.find(alias);
  return at == aliases_.end() ? std::span<Entry* const>{} : at->second.all();
}

}  // namespace wc::catalog
