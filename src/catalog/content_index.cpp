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

void ContentIndex::add_aliases(Entry& entry, std::span<const std::string> aliases) {
  for (const std::string& alias : aliases) {
    const auto at = aliases_.try_emplace(alias).first;
    if (std::ranges::find(at->second, &entry) != at->second.end()) continue;
    if (!entry.load) {
      const auto former = std::ranges::find_if(
          at->second, [&](const Entry* other) { return !other->load && alike(*other, entry); });
      if (former != at->second.end()) {
        std::erase((*former)->aliases, &at->first);
        at->second.erase(former);
        --alias_count_;
      }
    }
    at->second.push_back(&entry);
    entry.aliases.push_back(&at->first);
    ++alias_count_;
    if (entry.aliases.size() > kMaxAliasesOfEntry) drop_alias(entry, 0);
  }
}

void ContentIndex::drop_alias(Entry& entry, std::size_t index) {
  const auto at = aliases_.find(*entry.aliases[index]);
  entry.aliases.erase(entry.aliases.begin() + static_cast<std::ptrdiff_t>(index));
  std::erase(at->second, &entry);
  --alias_count_;
  if (at->second.empty()) aliases_.erase(at);
}

void ContentIndex::remove_aliases(Entry& entry) {
  while (!entry.aliases.empty()) drop_alias(entry, entry.aliases.size() - 1);
}

std::span<Entry* const> ContentIndex::known_by(std::string_view alias) const {
  const auto at = aliases_.find(alias);
  return at == aliases_.end() ? std::span<Entry* const>{} : at->second;
}

}  // namespace wc::catalog
