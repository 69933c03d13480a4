// The leases: a table of slots, so that a lease costs no search and no allocation of its own, with
// a list through the slots for each session. An id holds the slot and how often that was used, and
// is never given twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "catalog/record.hpp"

namespace wc::catalog {

struct Lease {
  Session* session = nullptr;  // none: the slot is free
  Place place;
  std::int64_t since_unix_ns = 0;
  std::uint32_t uses = 0;
  std::uint32_t next = UINT32_MAX;  // of the session's list, or of the free ones
  std::uint32_t previous = UINT32_MAX;
};

class LeaseTable {
 public:
  /// The caller has checked kMaxLeases.
  LeaseId add(Session& session, const Place& place, std::int64_t since_unix_ns);
  /// Nothing where there is no such lease (any more).
  [[nodiscard]] const Lease* find(LeaseId id) const;
  void remove(LeaseId id);

  /// A lease of a former process, under its id. False: its slot is taken, or there is none such.
  /// After the last one, restored().
  bool restore(LeaseId id, Session& session, const Place& place, std::int64_t since_unix_ns);
  void restored(std::uint32_t first_use);
  /// Any lease of the session.
  [[nodiscard]] LeaseId first_of(const Session& session) const;
  [[nodiscard]] std::size_t size() const { return size_; }

  // For walking in pages: slots in order, free ones among them.
  [[nodiscard]] std::uint32_t slots() const { return static_cast<std::uint32_t>(slots_.size()); }
  [[nodiscard]] const Lease& at(std::uint32_t slot) const { return slots_[slot]; }
  [[nodiscard]] LeaseId id_of(std::uint32_t slot) const;
  [[nodiscard]] static std::uint32_t slot_of(std::uint64_t id);

 private:
  void occupy(std::uint32_t slot, Session& session, const Place& place, std::int64_t since_unix_ns);

  std::deque<Lease> slots_;  // grows without moving
  std::uint32_t free_ = UINT32_MAX;
  std::size_t size_ = 0;
  std::uint32_t first_use_ = 0;  // of new slots
};

}  // namespace wc::catalog
