// Plays steps of its own choosing on a catalog and on the reference model, and compares replies,
// effects, counts and accounts after each. The choices come from a seed (model_test.cpp) or from a
// fuzzer's bytes (tests/fuzz/catalog_fuzz.cpp).
#pragma once

#include <array>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "catalog/reference_model.hpp"
#include "catalog/testing.hpp"

namespace wc::catalog {

class Scenario {
 public:
  /// `choose(n)` is below n.
  explicit Scenario(std::function<std::uint32_t(std::uint32_t)> choose)
      : choose_(std::move(choose)) {
    model_.budget = 40;
    (void)catalog_.set_budget("cpu", model_.budget, now());
    catalog_.set_protection(std::chrono::seconds(Model::kProtectionS));
    for (std::uint64_t& session : sessions_) open(session);
  }

  /// One step. What differs, and after which step; empty: nothing.
  std::string step();
  /// Ends every session and releases everything: whatever is left was leaked.
  std::string finish();

  [[nodiscard]] const Catalog& catalog() const { return catalog_; }
  [[nodiscard]] const auto& sessions() const { return sessions_; }

 private:
  using Step = void (Scenario::*)();

  void open(std::uint64_t& session) {
    session = ++last_session_;
    expect(catalog_.session_opened(SessionId{session}).has_value(), true);
  }
  std::uint64_t any_session() { return sessions_[choose_(kSessions)]; }
  bool one_in(std::uint32_t n) { return choose_(n) == 0; }
  Now now() const {
    return {Time{} + std::chrono::seconds(now_s_), static_cast<std::int64_t>(now_s_)};
  }

  template <typename T>
  void expect(const T& actual, const T& expected) {
    if (actual == expected || !difference_.empty()) return;
    if constexpr (std::is_same_v<T, std::string>) {
      difference_ = format("{}: \"{}\", the model says \"{}\"", said_, actual, expected);
    } else {
      difference_ = format("{}: {}, the model says {}", said_, static_cast<std::uint64_t>(actual),
                           static_cast<std::uint64_t>(expected));
    }
  }
  template <typename T>
  static std::string code(const Result<T>& result) {
    return std::string(name_of(result ? Code::ok : result.error().code));
  }

  Wanted any_wanted();
  Chosen any_chosen();
  static Selector selector_of(const Chosen& chosen);
  Model::MEntry* any_load();
  void wait_until(std::uint64_t deadline_s, bool waiting) {
    if (waiting) model_.waits.back().deadline = deadline_s;
  }

  void begin();
  void reserve();
  void publish();
  void abandon();
  void attach();
  void detach();
  void wait();
  void evict();
  void pin();
  void keep_alive();
  void drain();
  void expire_or_cancel();
  void reconnect();
  void release();

  void compare_effects();
  void compare_answer(const Answer& answer, const Model::MAnswer& expected);
  void compare_counts();

  static constexpr std::uint32_t kSessions = 6;
  std::function<std::uint32_t(std::uint32_t)> choose_;
  Catalog catalog_;
  Model model_;
  std::array<std::uint64_t, kSessions> sessions_{};
  std::uint64_t last_session_ = 0;
  std::uint64_t last_request_ = 0;
  std::uint64_t now_s_ = 1;
  std::map<int, EntryId> real_;           // the model's entries in the catalog
  std::map<int, LeaseId> real_leases_;    // and its leases
  std::map<EntryId, std::uint64_t> due_;  // memory to be released
  std::set<EntryId> ever_released_;
  std::vector<std::pair<std::uint64_t, EntryId>> cancelled_;
  std::string said_;  // the step, for people
  std::string difference_;
};

inline std::string Scenario::step() {
  static constexpr std::array<Step, 21> kSteps = {
      &Scenario::begin,      &Scenario::begin,   &Scenario::begin,
      &Scenario::reserve,    &Scenario::publish, &Scenario::publish,
      &Scenario::publish,    &Scenario::publish, &Scenario::abandon,
      &Scenario::attach,     &Scenario::attach,  &Scenario::detach,
      &Scenario::wait,       &Scenario::evict,   &Scenario::pin,
      &Scenario::keep_alive, &Scenario::drain,   &Scenario::expire_or_cancel,
      &Scenario::reconnect,  &Scenario::release, &Scenario::reserve};
  said_ = "nothing";
  (this->*kSteps[choose_(kSteps.size())])();
  if (difference_.empty()) compare_effects();
  if (difference_.empty()) compare_counts();
  return difference_;
}

inline void Scenario::compare_answer(const Answer& answer, const Model::MAnswer& expected) {
  std::string actual;
  if (const auto* granted = std::get_if<Granted>(&answer.what)) {
    actual = "granted";
    real_[expected.load] = granted->load;
  } else if (const auto* resident = std::get_if<Resident>(&answer.what)) {
    actual = format("resident {} {}", resident->entry.name, resident->entry.generation);
  } else if (std::holds_alternative<Reservation>(answer.what)) {
    actual = "reserved";
  } else if (const auto* entry = std::get_if<EntryInfo>(&answer.what)) {
    actual = expected.text == "drained" ? "drained" : format("entry {}", entry->generation);
  } else {
    actual = name_of(std::get<Error>(answer.what).code);
  }
  expect(format("answer to {}: {}", std::to_underlying(answer.request), actual),
         format("answer to {}: {}", expected.request, expected.text));
}

inline void Scenario::compare_effects() {
  std::vector<Answer> answers;
  std::set<EntryId> released;
  std::set<EntryId> cancelled;
  for (Effect& effect : catalog_.take_effects()) {
    if (auto* answer = std::get_if<Answer>(&effect)) {
      answers.push_back(std::move(*answer));
    } else if (const auto* release = std::get_if<ReleaseMemory>(&effect)) {
      released.insert(release->entry);
      expect(ever_released_.insert(release->entry).second, true);
      due_[release->entry] = release->bytes;
    } else if (const auto* cancel = std::get_if<CancelLoad>(&effect)) {
      cancelled.insert(cancel->load);
      cancelled_.emplace_back(std::to_underlying(cancel->session), cancel->load);
    }
  }
  const std::string step = said_;
  said_ = step + ": answers";
  expect(answers.size(), model_.answers.size());
  if (!difference_.empty()) return;
  std::ranges::sort(answers, {}, &Answer::request);
  std::ranges::sort(model_.answers, {}, &Model::MAnswer::request);
  for (std::size_t at = 0; at < answers.size(); ++at) {
    compare_answer(answers[at], model_.answers[at]);
  }
  said_ = step + ": released";
  expect(released.size(), model_.released.size());
  for (int id : model_.released) expect(released.contains(real_[id]), true);
  said_ = step + ": cancelled";
  expect(cancelled.size(), model_.cancelled.size());
  for (int id : model_.cancelled) expect(cancelled.contains(real_[id]), true);
  said_ = step;
  model_.answers.clear();
  model_.released.clear();
  model_.cancelled.clear();
}

inline void Scenario::compare_counts() {
  if (auto audit = catalog_.audit(); !audit) {
    difference_ = format("{}: audit: {}", said_, audit.error().message);
    return;
  }
  expect(catalog_.entry_count(), model_.entries.size());
  expect(catalog_.lease_count(), model_.leases.size());
  for (const DeviceStatus& device : catalog_.devices()) {
    expect(device.used_bytes(), model_.used());
    expect(device.releasing_bytes, model_.releasing);
  }
  std::size_t rows = 0;
  for (const Model::MSet& set : model_.sets) {
    rows += static_cast<std::size_t>(std::ranges::count_if(set.members, [](int id) { return id; }));
  }
  for (const Model::MEntry& entry : model_.entries) rows += entry.loading ? 1 : 0;
  expect(catalog_.list({}, 0, 1000).entries.size(), rows);
}

inline std::string Scenario::finish() {
  for (const std::uint64_t session : sessions_) {
    catalog_.session_closed(SessionId{session}, now());
    model_.close(session);
  }
  if (difference_.empty()) compare_effects();
  for (int name = 0; name < 3; ++name) {
    Chosen c;
    c.name = format("n{}", name);
    (void)catalog_.evict(named(c.name), true, now());
    model_.evict(c, true);
  }
  if (difference_.empty()) compare_effects();
  said_ = "at the end";
  expect(catalog_.entry_count(), std::size_t{0});
  expect(catalog_.next_deadline().has_value(), false);
  return difference_;
}

}  // namespace wc::catalog

#include "catalog/scenario_steps.hpp"  // IWYU pragma: export
