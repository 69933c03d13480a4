// The generation counters: one for each name and form, remembered after the name is gone. There is
// a bound to what is remembered: beyond it the forgotten counters raise a floor from which unknown
// names start, so that no generation of any name ever comes twice.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "catalog/snapshot.hpp"

namespace wc::catalog {

class Generations {
 public:
  /// A line of the name and form exists from now on, or one less does.
  void hold(std::string_view name, std::string_view form);
  void let_go(std::string_view name, std::string_view form);
  /// The next generation; the name and form must be held.
  std::uint64_t next(std::string_view name, std::string_view form);
  /// True where the name is known and every counter of it (of this form, if given) has reached
  /// `generation`.
  [[nodiscard]] bool passed(std::string_view name, std::string_view form,
                            std::uint64_t generation) const;
  [[nodiscard]] std::size_t size() const { return counters_.size(); }

  [[nodiscard]] std::uint64_t floor() const { return floor_; }
  /// Those that say more than the floor.
  [[nodiscard]] std::vector<SavedCounter> saved() const;
  /// Into empty ones, before any line. Errors: corrupt.
  Result<> restore(std::uint64_t floor, const std::vector<SavedCounter>& counters);
  /// 0: it has had none.
  [[nodiscard]] std::uint64_t last(std::string_view name, std::string_view form) const;

 private:
  struct Key {
    std::string name;
    std::string form;
  };
  struct View {
    std::string_view name;
    std::string_view form;
  };
  struct Less {
    using is_transparent = void;
    static View view(const Key& key) { return {key.name, key.form}; }
    static View view(const View& key) { return key; }
    template <typename A, typename B>
    bool operator()(const A& left, const B& right) const {
      const View a = view(left);
      const View b = view(right);
      return a.name != b.name ? a.name < b.name : a.form < b.form;
    }
  };
  struct Counter {
    std::uint64_t last = 0;
    std::uint32_t lines = 0;
  };
  void forget();

  std::map<Key, Counter, Less> counters_;
  std::size_t idle_ = 0;  // counters without a line
  std::size_t idle_bytes_ = 0;
  std::uint64_t floor_ = 0;
};

}  // namespace wc::catalog
