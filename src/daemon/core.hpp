// What the daemon is, between its sockets and its helper: the catalog, the descriptors that belong
// to it, and the sessions. Handlers (handlers.hpp) work on it; it carries out what the catalog
// decides. Thread rule: the event loop's.
//
// Invariant: after each message, answer and deadline, settle() has run, so that the catalog has no
// effect left that was not carried out.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/result.hpp"
#include "catalog/catalog.hpp"
#include "daemon/access_policy.hpp"
#include "daemon/device_holds.hpp"
#include "daemon/event_loop.hpp"
#include "daemon/helper_client.hpp"
#include "daemon/keeper.hpp"
#include "daemon/session.hpp"
#include "daemon/store.hpp"
#include "daemon/takes.hpp"

namespace wc::daemon {

/// A load that a session was granted, until it is over.
struct Load {
  memory::Transport transport = memory::Transport::host_fd;
  std::string device;
  bool cancelled = false;
};

/// What one Reserve asks for, while room and memory are being made.
struct Reserving {
  catalog::SessionId session{};
  std::uint64_t request = 0;
  catalog::EntryId load = catalog::EntryId::none;
  std::vector<std::uint64_t> sizes;              // of further segments
  std::optional<catalog::Reservation> segments;  // nothing: not yet, or only a manifest
  bool manifest = false;
  std::uint64_t manifest_bytes = 0;
};

/// A connection with what it has under way.
struct Client {
  std::unique_ptr<Session> session;
  std::map<catalog::EntryId, Load> loads;
  std::map<std::uint64_t, Load> begins;         // what waiting requests will be granted
  std::map<std::uint64_t, Reserving> reserves;  // what waits for room
  std::size_t refused_descriptors = 0;
  bool kept = false;  // by the supervisor: it has leases, or owns memory
  std::map<std::uint64_t, catalog::LeaseId> unclaimed;  // leases whose answer may have been lost
};

class Core final : public SessionOwner {
 public:
  struct Options {
    AccessPolicy policy{0};
    Limits limits;
    std::uint64_t descriptor_limit = 1024;  // of open files
    std::string epoch;
    std::string software;
    Keeper* keeper = nullptr;         // none: nothing outlives this process
    std::optional<Error> unreadable;  // the state that there is: nobody can be served
  };

  Core(EventLoop& loop, HelperClient& helper, Options options);
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  /// What a former process has kept; before the first client. After an error this object is of no
  /// use. Errors: version, corrupt, io; those of the catalog.
  Result<> restore(Shelf& shelf);

  /// A connection whose peer may connect. Errors: as Session::create.
  Result<> admit(Fd socket, const wire::Peer& peer);
  [[nodiscard]] std::size_t connections() const { return clients_.size(); }

  // ---- for handlers ----

  [[nodiscard]] catalog::Catalog& catalog() { return catalog_; }
  [[nodiscard]] Store& store() { return store_; }
  [[nodiscard]] HelperClient& helper() { return helper_; }
  [[nodiscard]] DeviceHolds& holds() { return holds_; }
  [[nodiscard]] const Options& options() const { return options_; }
  [[nodiscard]] catalog::Now now() const;
  [[nodiscard]] std::chrono::nanoseconds uptime() const { return loop_.now() - started_; }
  /// Null: it has ended.
  [[nodiscard]] Session* session(catalog::SessionId id);
  [[nodiscard]] Client& client_of(const Session& session);
  /// Errors: not_found (the session has no such load), cancelled (it was taken away).
  [[nodiscard]] Result<Load*> load_of(const Session& session, catalog::EntryId load);
  /// Errors: exhausted (the limit of open files).
  [[nodiscard]] Result<> room_for_descriptors(std::size_t more) const;
  void granted(Session& session, std::uint64_t request, catalog::EntryId id, Load load);
  /// The session's load is over, by whatever end.
  void load_over(Session& session, catalog::EntryId load);
  /// A job on the entry is over: gives it back if that waited for the job.
  void job_over(catalog::EntryId entry);
  /// Closes descriptors whose last close may take long, where nobody waits for it: one job at a
  /// time, with all that came meanwhile.
  void dispose(std::vector<Fd> descriptors);
  /// The supervisor gets the entry's memory, as it is now.
  void keep_memory(catalog::EntryId entry);
  void keep_connection(Session& session);
  /// A lease that answers the request; and its end.
  void keep_lease(Session& session, std::uint64_t request, catalog::LeaseId lease);
  void lease_over(Session& session, catalog::LeaseId lease);
  /// A restored lease that this request was answered with, which nobody may have received.
  [[nodiscard]] std::optional<catalog::LeaseId> unclaimed_lease(const Session& session,
                                                                std::uint64_t request);
  void settle();
  void stop() { loop_.stop(); }

  // ---- SessionOwner ----

  [[nodiscard]] std::size_t descriptors_due(const Session& session) override;
  [[nodiscard]] Result<> take_descriptors(Session& session,
                                          const wire::fb::Message& message) override;
  void on_message(Session& session, const wire::fb::Message& message,
                  std::vector<Fd> descriptors) override;
  void on_ended(Session& session) override;
  [[nodiscard]] std::uint64_t rests_on() override;
  [[nodiscard]] bool kept(std::uint64_t batch) override;
  void hold(Session& session) override { held_.push_back(session.id()); }
  [[nodiscard]] std::span<std::byte> receive_buffer() override { return buffer_->bytes; }

 private:
  void carry_out(catalog::ReleaseMemory& effect);
  void carry_out(catalog::Answer& effect);
  void carry_out(catalog::Progress& effect);
  void carry_out(catalog::CancelLoad& effect);
  static void carry_out(catalog::EvictedForRoom& effect);
  void arm_deadline();
  void dispose_some();
  void refuse_descriptors(Session& session, std::vector<Fd> descriptors);
  void bury(catalog::SessionId id);
  void taken(catalog::SessionId id, Result<std::vector<Fd>> descriptors);
  void withdraw_ipc_of(catalog::SessionId publisher);
  void give_back(catalog::EntryId entry);
  void schedule_commit();
  void schedule_uses();
  void put_state();
  void commit();
  void put_all();
  void flush_held();
  Result<> restore_memory(const ShelfKey& key, ShelfItem& item);
  Result<> restore_connection(const ShelfKey& key, ShelfItem& item);
  Result<> restore_lease(const ShelfKey& key, ShelfItem& item);
  void resume();

  EventLoop& loop_;
  HelperClient& helper_;
  Options options_;
  Clock::time_point started_;
  catalog::Catalog catalog_;
  Store store_;
  DeviceHolds holds_;
  Takes takes_;
  std::unordered_map<catalog::SessionId, Client> clients_;
  std::uint64_t next_session_ = 1;
  std::vector<Fd> disposing_;
  bool dispose_under_way_ = false;
  std::uint64_t kept_revision_ = 0;  // of the catalog, as the supervisor has it
  std::uint64_t kept_uses_ = 0;      // the same
  bool commit_scheduled_ = false;
  std::vector<catalog::SessionId> held_;
  std::unique_ptr<wire::PacketBuffer> buffer_ = std::make_unique<wire::PacketBuffer>();
  std::optional<catalog::Time> armed_for_;
  EventLoop::Timer deadline_;
  EventLoop::Timer keep_uses_;
};

}  // namespace wc::daemon
