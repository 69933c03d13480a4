// Lists in pages. The rows are numbered by set and rank, or by load, in one order that does not
// change, so that a page can go on where the last one ended whatever happened between.
#include <algorithm>

#include "catalog/catalog.hpp"
#include "catalog/limits.hpp"
#include "catalog/tables.hpp"

namespace wc::catalog {
namespace {

// Sets and entries are numbered from one counter; ranks are below kMaxWorld.
constexpr std::uint64_t kRanks = kMaxWorld;

class Page {
 public:
  Page(const Tables& tables, const Selector& selector, std::uint64_t after, std::size_t limit)
      : tables_(tables),
        selector_(selector),
        after_(after),
        limit_(std::clamp<std::size_t>(limit, 1, kMaxPage)) {}

  /// False where the page was full before.
  bool add(const Set& set) {
    for (std::uint32_t rank = 0; rank < set.world(); ++rank) {
      const std::uint64_t row = set.id * kRanks + rank;
      const Entry* entry = set.members[rank].entry;
      if (row <= after_ || entry == nullptr) continue;
      const Subject subject{*set.name,   *set.form,      tables_.devices[entry->device].device,
                            set.world(), set.generation, entry};
      if (!matches(selector_, subject)) continue;
      if (full()) return false;
      page_.entries.push_back(tables_.info(set, rank));
      last_ = row;
    }
    return true;
  }

  bool add(const Entry& load) {
    const std::uint64_t row = std::to_underlying(load.id) * kRanks;
    const Subject subject{*load.load->line->name->text,
                          *load.form,
                          tables_.devices[load.device].device,
                          load.world,
                          0,
                          &load};
    if (row <= after_ || !matches(selector_, subject)) return true;
    if (full()) return false;
    page_.entries.push_back(tables_.info(load));
    last_ = row;
    return true;
  }

  EntryPage take(bool more) {
    page_.next = more ? last_ : 0;
    return std::move(page_);
  }

 private:
  [[nodiscard]] bool full() const { return page_.entries.size() >= limit_; }

  const Tables& tables_;
  const Selector& selector_;
  std::uint64_t after_;
  std::size_t limit_;
  std::uint64_t last_ = 0;
  EntryPage page_;
};

}  // namespace

EntryPage Catalog::list(const Selector& selector, std::uint64_t after, std::size_t limit) const {
  const Tables& t = *tables_;
  Page page(t, selector, after, limit);
  auto set = t.sets.lower_bound(after / kRanks);
  auto load = t.loads.lower_bound(EntryId{after / kRanks});
  while (set != t.sets.end() || load != t.loads.end()) {
    const bool take_set = load == t.loads.end() ||
                          (set != t.sets.end() && set->first < std::to_underlying(load->first));
    const bool added = take_set ? page.add((set++)->second) : page.add(*(load++)->second);
    if (!added) return page.take(true);
  }
  return page.take(false);
}

LeasePage Catalog::leases(const Selector& selector, std::uint64_t after, std::size_t limit) const {
  const Tables& t = *tables_;
  limit = std::clamp<std::size_t>(limit, 1, kMaxPage);
  LeasePage page;
  std::uint32_t slot = after == 0 ? 0 : LeaseTable::slot_of(after) + 1;
  for (std::size_t seen = 0; slot < t.leases.slots(); ++slot, ++seen) {
    if (page.leases.size() == limit || seen == kMaxLeaseScan) {
      page.next = std::to_underlying(t.leases.id_of(slot - 1));
      break;
    }
    const Lease& lease = t.leases.at(slot);
    if (lease.session == nullptr) continue;
    const Set& set = *lease.place.set;
    const Entry& entry = lease.place.entry();
    const std::string& device = t.devices[entry.device].device;
    if (!matches(selector, {*set.name, *set.form, device, set.world(), set.generation, &entry}))
      continue;
    LeaseInfo info;
    info.lease = t.leases.id_of(slot);
    info.session = lease.session->id;
    info.entry = entry.id;
    info.name = *set.name;
    info.form = *set.form;
    info.device = device;
    info.generation = set.generation;
    info.bytes = entry.bytes;
    info.rank = lease.place.rank;
    info.since_unix_ns = lease.since_unix_ns;
    page.leases.push_back(std::move(info));
  }
  return page;
}

}  // namespace wc::catalog
