// Finds entries by what is in them: fingerprint and aliases, loading ones by what their loaders
// announced. Of entries alike in device, form, rank and world, the latest that claims an alias has
// it: a receipt names one content.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "catalog/record.hpp"

namespace wc::catalog {

/// Lets string_views search in tables of strings.
struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>{}(text);
  }
};

class ContentIndex {
 public:
  struct Key {
    std::string_view fingerprint;  // the entry's own text
    std::uint16_t device = 0;
    auto operator<=>(const Key&) const = default;
  };
  using Fingerprints = std::multimap<Key, Entry*>;

  /// By the fingerprint that the entry has now; it must not change while it is indexed.
  void add_fingerprint(Entry& entry);
  void remove_fingerprint(Entry& entry);
  /// The entries that exist of it on the device.
  [[nodiscard]] std::pair<Fingerprints::const_iterator, Fingerprints::const_iterator> with(
      std::string_view fingerprint, std::uint16_t device) const;
  /// From the first that starts with the prefix.
  [[nodiscard]] Fingerprints::const_iterator from(std::string_view prefix) const;
  [[nodiscard]] Fingerprints::const_iterator end() const { return fingerprints_.end(); }

  /// Adds those that are new to the entry, best first; the oldest beyond kMaxAliasesOfEntry go.
  void add_aliases(Entry& entry, std::span<const std::string> aliases);
  void remove_aliases(Entry& entry);
  /// Entries that are known by the alias.
  [[nodiscard]] std::span<Entry* const> known_by(std::string_view alias) const;
  [[nodiscard]] std::size_t alias_count() const { return alias_count_; }

 private:
  /// Nearly every alias is of one entry, which costs no allocation of its own.
  class Known {
   public:
    void add(Entry* entry);
    void remove(Entry* entry);
    [[nodiscard]] std::span<Entry* const> all() const;

   private:
    Entry* one_ = nullptr;
    std::unique_ptr<std::vector<Entry*>> several_;  // then `one_` is unused
  };
  void drop_alias(Entry& entry, std::size_t at);

  Fingerprints fingerprints_;
  std::unordered_map<std::string, Known, TextHash, std::equal_to<>> aliases_;
  std::size_t alias_count_ = 0;  // pairs of alias and entry
};

}  // namespace wc::catalog
