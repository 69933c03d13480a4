// A catalog with few words, for its tests: sessions that exist, entries in one call, effects
// sorted.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/units.hpp"
#include "catalog/catalog.hpp"

namespace wc::catalog {

/// 32 digits, different for different numbers.
inline std::string fingerprint(unsigned number) { return format("{:032x}", number + 0xa0000000U); }

inline Selector named(std::string name, std::uint64_t generation = 0) {
  Selector selector;
  selector.name = std::move(name);
  selector.generation = generation;
  return selector;
}

inline BeginRequest wanting(std::string name, std::vector<std::string> aliases = {}) {
  BeginRequest request;
  request.name = std::move(name);
  request.device = "cpu";
  request.aliases = std::move(aliases);
  return request;
}

class Bench {
 public:
  Catalog catalog;
  Now now{Time{} + std::chrono::hours(1), 1'000};
  std::vector<Effect> effects;

  Bench() {
    for (std::uint64_t id = 1; id <= 8; ++id) (void)catalog.session_opened(SessionId{id});
  }

  static SessionId session(std::uint64_t id) { return SessionId{id}; }
  static RequestId request(std::uint64_t id) { return RequestId{id}; }

  void pass(std::chrono::nanoseconds time) {
    now.steady += std::chrono::duration_cast<Time::duration>(time);
    now.unix_ns += time.count();
  }

  Result<std::optional<Decision>> begin(std::uint64_t by, BeginRequest wanted,
                                        std::uint64_t number = 1) {
    return catalog.begin(session(by), request(number), std::move(wanted), now);
  }
  /// The granted load; none where something else was answered.
  EntryId granted(std::uint64_t by, BeginRequest wanted) {
    auto reply = begin(by, std::move(wanted));
    if (!reply || !*reply || !std::holds_alternative<Granted>(**reply)) return EntryId::none;
    return std::get<Granted>(**reply).load;
  }
  /// Room that is there at once. Errors: as Catalog::reserve; busy where it would have to wait.
  Result<Reservation> reserve(std::uint64_t by, EntryId load, std::vector<std::uint64_t> sizes) {
    auto made =
        TRY(catalog.reserve(session(by), request(1'000), {load, std::move(sizes), {}}, now));
    if (!made) return fail(Code::busy, "it waits for room");
    return *std::move(made);
  }
  Result<Publication> publish(std::uint64_t by, EntryId load, unsigned content,
                              std::uint64_t bytes = kGiB, std::string source_digest = {}) {
    TRY(reserve(by, load, {bytes}));
    TRY(catalog.publish_begin(session(by), load, {fingerprint(content), {}}));
    return catalog.publish_done(load, {fingerprint(content), std::move(source_digest), 1}, now);
  }
  /// Loads and publishes content that nobody knows yet.
  Result<Publication> load(std::uint64_t by, BeginRequest wanted, unsigned content,
                           std::uint64_t bytes = kGiB) {
    return publish(by, granted(by, std::move(wanted)), content, bytes);
  }
  Result<Attached> attach(std::uint64_t by, const Selector& selector) {
    return catalog.attach(session(by), selector, now);
  }

  /// The effects since the last call that are of this type.
  template <typename T>
  std::vector<T> taken() {
    for (Effect& effect : catalog.take_effects()) effects.push_back(std::move(effect));
    std::vector<T> out;
    std::erase_if(effects, [&](Effect& effect) {
      if (!std::holds_alternative<T>(effect)) return false;
      out.push_back(std::move(std::get<T>(effect)));
      return true;
    });
    return out;
  }
  DeviceStatus device(std::string_view name = "cpu") const {
    for (const DeviceStatus& each : catalog.devices()) {
      if (each.device == name) return each;
    }
    return {};
  }
};

}  // namespace wc::catalog
