#include "catalog/lease_table.hpp"

#include <utility>

#include "catalog/limits.hpp"

namespace wc::catalog {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;
constexpr unsigned kSlotBits = 24;  // kMaxLeases fit; 40 bits count the uses of a slot
constexpr std::uint64_t kSlotMask = (std::uint64_t{1} << kSlotBits) - 1;

}  // namespace

// The slot counts from 1 in an id, so that none is 0.
std::uint32_t LeaseTable::slot_of(std::uint64_t id) {
  return static_cast<std::uint32_t>(id & kSlotMask) - 1;
}

LeaseId LeaseTable::id_of(std::uint32_t slot) const {
  return LeaseId{(std::uint64_t{slots_[slot].uses} << kSlotBits) | (std::uint64_t{slot} + 1)};
}

const Lease* LeaseTable::find(LeaseId id) const {
  const std::uint32_t slot = slot_of(std::to_underlying(id));
  if (slot >= slots_.size() || slots_[slot].session == nullptr || id_of(slot) != id) return nullptr;
  return &slots_[slot];
}

void LeaseTable::occupy(std::uint32_t slot, Session& session, const Place& place,
                        std::int64_t since_unix_ns) {
  Lease& lease = slots_[slot];
  lease.session = &session;
  lease.place = place;
  lease.since_unix_ns = since_unix_ns;
  lease.previous = kNone;
  lease.next = std::exchange(session.first_lease, slot);
  if (lease.next != kNone) slots_[lease.next].previous = slot;
  ++session.leases;
  ++size_;
}

LeaseId LeaseTable::add(Session& session, const Place& place, std::int64_t since_unix_ns) {
  std::uint32_t slot = free_;
  if (slot == kNone) {
    slot = slots();
    slots_.emplace_back().uses = first_use_;
  } else {
    free_ = slots_[slot].next;
  }
  occupy(slot, session, place, since_unix_ns);
  return id_of(slot);
}

void LeaseTable::remove(LeaseId id) {
  const std::uint32_t slot = slot_of(std::to_underlying(id));
  Lease& lease = slots_[slot];
  if (lease.next != kNone) slots_[lease.next].previous = lease.previous;
  if (lease.previous != kNone) {
    slots_[lease.previous].next = lease.next;
  } else {
    lease.session->first_lease = lease.next;
  }
  --lease.session->leases;
  --size_;
  lease.session = nullptr;
  lease.place = {};
  // A slot whose count of uses is spent stays out of use, so that no id comes back.
  if (++lease.uses != 0) lease.next = std::exchange(free_, slot);
}

bool LeaseTable::restore(LeaseId id, Session& session, const Place& place,
                         std::int64_t since_unix_ns) {
  const std::uint32_t slot = slot_of(std::to_underlying(id));
  if (slot >= kMaxLeases) return false;
  while (slots_.size() <= slot) slots_.emplace_back();
  if (slots_[slot].session != nullptr) return false;
  const std::uint64_t uses = std::to_underlying(id) >> kSlotBits;
  if (uses > UINT32_MAX) return false;
  slots_[slot].uses = static_cast<std::uint32_t>(uses);
  occupy(slot, session, place, since_unix_ns);
  return true;
}

void LeaseTable::restored(std::uint32_t first_use) {
  first_use_ = first_use;
  free_ = kNone;
  for (std::uint32_t slot = 0; slot < slots(); ++slot) {
    Lease& lease = slots_[slot];
    if (lease.session != nullptr) continue;
    lease.uses = first_use;
    lease.next = std::exchange(free_, slot);
  }
}

LeaseId LeaseTable::first_of(const Session& session) const {
  return session.first_lease == kNone ? LeaseId::none : id_of(session.first_lease);
}

}  // namespace wc::catalog
