// The catalog: which entries there are, under which names and generations, who loads, waits and
// reads, and how many bytes that takes. A pure state machine: no socket, no device, no descriptor,
// no clock. Every call that can change something may leave effects, which the caller takes with
// take_effects() and carries out, in order, before its next call.
//
// Thread rule: one thread. Refuses: to wait, to name a thing that is half published, to grow
// without limit (limits.hpp). A call that fails has changed nothing, unless it says otherwise.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "catalog/budget.hpp"
#include "catalog/effects.hpp"
#include "catalog/entry.hpp"
#include "catalog/ids.hpp"
#include "catalog/lease.hpp"
#include "catalog/requests.hpp"
#include "catalog/snapshot.hpp"

namespace wc::catalog {

struct Tables;

class Catalog {
 public:
  Catalog();
  ~Catalog();
  Catalog(const Catalog&) = delete;
  Catalog& operator=(const Catalog&) = delete;

  // ---- sessions ----

  /// Before anything else of a session. Errors: exhausted (kMaxSessions), invalid_argument (open).
  Result<> session_opened(SessionId session);
  /// Its leases, loads and waiting requests end. Unknown sessions are passed over.
  void session_closed(SessionId session, const Now& now);

  // ---- publishers ----

  /// Asks for the right to load; nothing: the request waits, an Answer follows. Errors:
  /// invalid_argument, already_exists (other content has the name), busy (being loaded and not
  /// willing to wait, or draining), exhausted (a bound).
  Result<std::optional<Decision>> begin(SessionId session, RequestId request, BeginRequest wanted,
                                        const Now& now);

  // The calls on a load answer `not_found` where the session has no such load, and `cancelled`
  // where it was taken away.

  /// Accounts further segments. Where they need room, entries that nobody leases, pins or protects
  /// are evicted, least recently used first, if that is enough; nothing: the request waits for
  /// their memory to be free, or for its `room_deadline`, and an Answer follows. Errors: exhausted
  /// (needed, free, what could be evicted, and who holds the rest), invalid_argument (none, too
  /// many, empty or too large ones), busy (being published, or waiting for memory already).
  Result<std::optional<Reservation>> reserve(SessionId session, RequestId request,
                                             ReserveRequest wanted, const Now& now);
  /// The memory of the load's last reservation could not be had: takes it out of the account
  /// again. Nothing happens where the load has ended meanwhile.
  void reserve_failed(EntryId load, const Reservation& reservation, const Now& now);
  /// Tells those who wait. Errors: as said above.
  Result<> progress(SessionId session, EntryId load, std::uint64_t done_bytes,
                    std::uint64_t total_bytes, const Now& now);

  /// First step: the daemon may seal and check. The load stays one until the second step. Errors:
  /// invalid_argument (fingerprint, aliases, nothing reserved), mismatch (another fingerprint than
  /// begin() said), busy (being published already).
  Result<> publish_begin(SessionId session, EntryId load, PublishRequest request);
  /// Second step: visible at once, or the set's last missing rank is. The load is over also after
  /// an error: already_exists, mismatch, exhausted (a bound); not_found: it had ended (its session
  /// has, or it was cancelled), nobody waits for an answer.
  Result<Publication> publish_done(EntryId load, const Summary& summary, const Now& now);
  /// Sealing or checking failed: the load is over, the next in line may try. The daemon has the
  /// error and answers. Errors: not_found, as above.
  Result<> publish_failed(EntryId load, const Now& now);
  /// The session gives the load up; who waits for it may try. A cancelled load counts as given up.
  Result<> abandon(SessionId session, EntryId load, const Now& now);

  // ---- readers ----

  /// A lease on the entry. Errors: not_found (with near names), busy (still loading, with its
  /// progress; draining), corrupt (failed), invalid_argument (several match: they are listed),
  /// mismatch (the name has
  /// other content than the selector's fingerprint or aliases), exhausted (a bound).
  Result<Attached> attach(SessionId session, const Selector& selector, const Now& now);
  /// Errors: not_found (the session has no such lease).
  Result<> detach(SessionId session, LeaseId lease, const Now& now);
  /// Ends a lease whose reader could not map the entry. Where that is the entry's fault, who says
  /// so could have published it or has, and nobody else holds it or has ever mapped it, the entry
  /// is `failed` from now on: attach() and wait() answer `corrupt` with the reason, and the next
  /// begin() of its content, or of another under its name, loads. Errors: as detach().
  Result<Rejected> reject(SessionId session, LeaseId lease, Rejection rejection, const Now& now);
  /// What attach() would take, and draining entries. Errors: as attach().
  [[nodiscard]] Result<EntryInfo> lookup(const Selector& selector) const;
  /// Until attach() would succeed; nothing: the request waits, an Answer follows. Errors:
  /// invalid_argument, not_found (a generation that has been and will not come again), exhausted.
  Result<std::optional<EntryInfo>> wait(SessionId session, RequestId request,
                                        const Selector& selector, std::optional<Time> deadline,
                                        const Now& now);

  // ---- waiting requests ----

  /// The request is answered `cancelled`. False: no such request waits.
  bool cancel(SessionId session, RequestId request, const Now& now);
  /// When expire() has something to do: a wait is over, or what was protected may make room for
  /// one. Nothing: never.
  [[nodiscard]] std::optional<Time> next_deadline() const;
  /// Answers `timed_out`, saying what was waited for and how far it is.
  void expire(const Now& now);

  // ---- operators ----

  /// The entries that the selector matches (an empty one: all), at most kMaxPage of them.
  [[nodiscard]] EntryPage list(const Selector& selector, std::uint64_t after,
                               std::size_t limit) const;
  [[nodiscard]] LeasePage leases(const Selector& selector, std::uint64_t after,
                                 std::size_t limit) const;
  /// Takes away names: NAME in every form, partition and generation that the selector matches,
  /// incomplete sets and loads among them; NAME@GENERATION one; a fingerprint or alias under all
  /// its names. A set goes as a whole. Memory goes with the last name and the last lease. Errors:
  /// not_found, busy (pinned or loading, without force), invalid_argument.
  Result<Evicted> evict(const Selector& selector, bool force, const Now& now);
  /// By name every rank of the set, else the one entry. A pinned entry is evicted by force only,
  /// and outlives the next generation. Errors: as lookup().
  Result<EntryInfo> pin(const Selector& selector, bool pinned, const Now& now);
  /// How long it is kept after each use before room may be made of it (kForever). By name every
  /// rank of the set, else the one entry. Errors: as lookup().
  Result<EntryInfo> keep_alive(const Selector& selector, std::chrono::nanoseconds time,
                               const Now& now);
  /// As pin(): refuses new leases; answers when no lease is left. At the deadline `timed_out`, and
  /// it stays draining. Errors: as lookup(), exhausted.
  Result<std::optional<EntryInfo>> drain(SessionId session, RequestId request,
                                         const Selector& selector, std::optional<Time> deadline,
                                         const Now& now);
  /// Published again; drains that wait for it are answered `cancelled`. Errors: as lookup().
  Result<EntryInfo> undrain(const Selector& selector, const Now& now);

  // ---- accounts ----

  /// 0: no limit but the device's own. `from` says whose choice it is, for people. What is resident
  /// stays, also above a lowered budget. Errors: invalid_argument, exhausted (kMaxDevices).
  Result<> set_budget(std::string_view device, std::uint64_t bytes, const Now& now,
                      std::string_view from = "given");
  /// How long an entry is kept after a reader of it died instead of detaching.
  void set_protection(std::chrono::nanoseconds after_death);
  /// The memory of a ReleaseMemory is free. Errors: not_found (no release is under way).
  Result<> released(EntryId entry, const Now& now);
  [[nodiscard]] std::vector<DeviceStatus> devices() const;
  [[nodiscard]] std::size_t entry_count() const;  // loading ones included
  [[nodiscard]] std::size_t lease_count() const;
  [[nodiscard]] std::size_t session_count() const;

  // ---- what outlives this process ----

  /// Rises with every change that a snapshot would tell, but for the times of use.
  [[nodiscard]] std::uint64_t revision() const;
  /// Rises with every use of an entry: which was used when is told too, but may be told later.
  [[nodiscard]] std::uint64_t uses() const;
  [[nodiscard]] Snapshot snapshot() const;
  /// What the session's lease is of. Errors: not_found.
  [[nodiscard]] Result<EntryInfo> entry_of(SessionId session, LeaseId lease) const;
  [[nodiscard]] std::optional<SavedLease> saved_lease(LeaseId lease) const;
  [[nodiscard]] std::vector<SavedLease> leases_of(SessionId session) const;
  /// Into an empty catalog: restore(), then the sessions that are still there with their leases,
  /// then restored(), which lets go of what only other leases kept and checks the whole. After an
  /// error the catalog is of no use. Errors: corrupt, internal (audit), and those of the bounds.
  /// New leases count the uses of their slots from `first_use`, so that no id comes back.
  Result<> restore(const Snapshot& from);
  Result<> restore_lease(SessionId session, const SavedLease& lease);
  Result<> restored(std::uint32_t first_use);

  /// What has to be done since the last call.
  [[nodiscard]] std::vector<Effect> take_effects();

  /// Walks every table and compares them with each other: `internal`, naming what does not fit.
  /// Costs as much as there is; for tests.
  [[nodiscard]] Result<> audit() const;

 private:
  std::unique_ptr<Tables> tables_;
};

}  // namespace wc::catalog
