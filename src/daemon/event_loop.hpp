// One thread that waits for descriptors and deadlines. Level-triggered epoll; the nearest deadline
// is epoll_wait's timeout, so that an idle daemon is never woken and a changed deadline costs no
// system call.
//
// Thread rule: one thread makes it, runs it and calls everything here. Handlers are borrowed: they
// outlive their Watch. A handler may end any watch or timer, its own too, while it runs; an event
// that was already fetched for an ended watch is not delivered.
// What must not happen inside a handler (its own object's end) goes through later().
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace wc::daemon {

using Clock = std::chrono::steady_clock;

class EventHandler {
 public:
  virtual ~EventHandler() = default;
  /// EPOLLIN, EPOLLOUT, EPOLLHUP, ... of a watched descriptor. Does a bounded amount of work: what
  /// is left is reported again in the next turn.
  virtual void on_ready(std::uint32_t events) = 0;
};

/// For an object that watches more than one descriptor.
class CallHandler final : public EventHandler {
 public:
  explicit CallHandler(std::move_only_function<void(std::uint32_t)> call)
      : call_(std::move(call)) {}
  void on_ready(std::uint32_t events) override { call_(events); }

 private:
  std::move_only_function<void(std::uint32_t)> call_;
};

class EventLoop {
 public:
  /// A descriptor's place in the loop; ends with this object.
  class [[nodiscard]] Watch {
   public:
    Watch() = default;
    Watch(Watch&& other) noexcept
        : loop_(std::exchange(other.loop_, nullptr)), slot_(other.slot_) {}
    Watch& operator=(Watch&& other) noexcept {
      if (this != &other) {
        reset();
        loop_ = std::exchange(other.loop_, nullptr);
        slot_ = other.slot_;
      }
      return *this;
    }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    ~Watch() { reset(); }

    /// What to be told of from now on. Errors are the kernel's being out of memory: logged by the
    /// loop, the watch stays as it was.
    void set(std::uint32_t events);
    void reset();

   private:
    friend class EventLoop;
    Watch(EventLoop* loop, std::uint32_t slot) : loop_(loop), slot_(slot) {}
    EventLoop* loop_ = nullptr;
    std::uint32_t slot_ = 0;
  };

  /// A deadline; ends with this object, or when it has fired.
  class [[nodiscard]] Timer {
   public:
    Timer() = default;
    Timer(Timer&& other) noexcept : loop_(std::exchange(other.loop_, nullptr)), key_(other.key_) {}
    Timer& operator=(Timer&& other) noexcept {
      if (this != &other) {
        reset();
        loop_ = std::exchange(other.loop_, nullptr);
        key_ = other.key_;
      }
      return *this;
    }
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;
    ~Timer() { reset(); }
    void reset();
    /// Set and not fired.
    [[nodiscard]] bool armed() const;

   private:
    friend class EventLoop;
    using Key = std::pair<Clock::time_point, std::uint64_t>;
    Timer(EventLoop* loop, Key key) : loop_(loop), key_(key) {}
    EventLoop* loop_ = nullptr;
    Key key_;
  };

  using Task = std::move_only_function<void()>;

  /// Errors: io.
  [[nodiscard]] static Result<EventLoop> create();
  EventLoop(EventLoop&&) = default;  // before the first watch and timer only
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;
  EventLoop& operator=(EventLoop&&) = delete;
  ~EventLoop() = default;

  /// `handler` is called from the next turn on. Errors: io, exhausted (ENOSPC).
  [[nodiscard]] Result<Watch> watch(FdView fd, std::uint32_t events, EventHandler& handler);
  /// `task` runs once, at or soon after `when`.
  [[nodiscard]] Timer at(Clock::time_point when, Task task);
  /// Runs at the end of this turn, in order.
  void later(Task task);

  /// Turns until stop(). Errors: io (epoll_wait itself).
  Result<> run();
  void stop() { stopped_ = true; }

  /// The time at which this turn began: one reading of the clock for all that it does.
  [[nodiscard]] Clock::time_point now() const { return now_; }

 private:
  struct Slot {
    EventHandler* handler = nullptr;
    int fd = -1;
    std::uint32_t incarnation = 0;  // tells a slot's former user's events apart
    std::uint32_t events = 0;
  };

  explicit EventLoop(Fd epoll) : epoll_(std::move(epoll)) {}
  [[nodiscard]] int timeout_ms() const;
  Result<> turn();
  void fire_timers();
  void run_later();

  Fd epoll_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_slots_;
  std::map<Timer::Key, Task> timers_;
  std::vector<Task> later_;
  std::uint64_t next_timer_ = 1;
  Clock::time_point now_ = Clock::now();
  bool stopped_ = false;
};

}  // namespace wc::daemon
