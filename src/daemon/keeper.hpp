// The daemon's side of the supervisor: what must outlive this process is put there, in batches, and
// whatever the daemon says to anybody waits until the supervisor has acknowledged what it rests on.
// Never waits itself. A supervisor that dies is replaced at once and given everything anew; while
// none can be started, nothing is held back, and the log says so.
//
// Thread rule: the event loop's.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/fd.hpp"
#include "base/result.hpp"
#include "daemon/event_loop.hpp"
#include "daemon/shelf.hpp"
#include "daemon/supervisor.hpp"

namespace wc::daemon {

class Keeper {
 public:
  using Task = std::move_only_function<void()>;
  struct Hooks {
    /// More was acknowledged than before.
    std::function<void()> acknowledged;
    /// Puts everything that there is: a new supervisor has nothing.
    std::function<void()> put_all;
  };

  /// `family` outlives it. Errors: as EventLoop::watch.
  [[nodiscard]] static Result<std::unique_ptr<Keeper>> create(EventLoop& loop, Fd link,
                                                              const Supervisor::Options& family);
  Keeper(EventLoop& loop, Fd link, const Supervisor::Options& family)
      : loop_(loop), family_(family), link_(std::move(link)) {}
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  void set_hooks(Hooks hooks) { hooks_ = std::move(hooks); }

  /// Views stay open until the change is acknowledged, or dropped by a later one that is.
  void put(const ShelfKey& key, std::string bytes, std::vector<FdView> views);
  void put_owned(const ShelfKey& key, std::string bytes, std::vector<Fd> owned);
  void drop(const ShelfKey& key);
  void drop_group(Shelved kind, std::uint64_t group);
  [[nodiscard]] bool has_changes() const { return !changes_.empty(); }
  /// Sends what was put and dropped since the last call, as one batch.
  void commit();

  /// The batch that covers everything until now: the next one where `changed`, or something was
  /// put.
  [[nodiscard]] std::uint64_t covering(bool changed) const {
    return changed || has_changes() ? last_ + 1 : last_;
  }
  [[nodiscard]] bool acknowledged(std::uint64_t batch) const { return batch <= acknowledged_; }
  /// When the batch is acknowledged; never from inside this call.
  void after(std::uint64_t batch, Task task);

  /// The first word of a daemon that serves, and the last of one that ends in order.
  void say(LinkWord word, std::string text = {});

 private:
  struct Outgoing {
    std::string bytes;
    std::vector<FdView> views;
    std::vector<Fd> owned;
  };
  void send();
  void receive();
  void acknowledge(std::uint64_t batch);
  void renew();

  EventLoop& loop_;
  const Supervisor::Options& family_;
  Hooks hooks_;
  Fd link_;
  pid_t supervisor_ = 0;  // where it is this process's child
  std::vector<Change> changes_;
  std::deque<Outgoing> queue_;
  std::map<std::uint64_t, std::vector<Task>> tasks_;
  std::uint64_t last_ = 0;
  std::uint64_t acknowledged_ = 0;
  std::unique_ptr<wire::PacketBuffer> buffer_ = std::make_unique<wire::PacketBuffer>();
  CallHandler on_link_{[this](std::uint32_t) {
    send();
    receive();
  }};
  EventLoop::Watch watch_;
  EventLoop::Timer retry_;
};

}  // namespace wc::daemon
