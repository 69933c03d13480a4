#include "daemon/event_loop.hpp"

#include <algorithm>
#include <array>

#include <sys/epoll.h>

#include "daemon/log.hpp"

namespace wc::daemon {
namespace {

constexpr std::size_t kEventsPerTurn = 64;
constexpr std::size_t kTimersPerTurn = 256;

std::uint64_t token_of(std::uint32_t slot, std::uint32_t incarnation) {
  return (std::uint64_t{incarnation} << 32) | slot;
}

}  // namespace

Result<EventLoop> EventLoop::create() {
  Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return fail_errno("epoll_create1");
  return EventLoop(std::move(epoll));
}

Result<EventLoop::Watch> EventLoop::watch(FdView fd, std::uint32_t events, EventHandler& handler) {
  if (free_slots_.empty()) {
    free_slots_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const std::uint32_t slot = free_slots_.back();
  Slot& place = slots_[slot];
  epoll_event event{};
  event.events = events;
  event.data.u64 = token_of(slot, place.incarnation);
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd.get(), &event) != 0) {
    return fail_os(errno == ENOSPC ? Code::exhausted : Code::io, errno, "epoll_ctl(EPOLL_CTL_ADD)");
  }
  free_slots_.pop_back();
  place.handler = &handler;
  place.fd = fd.get();
  place.events = events;
  return Watch(this, slot);
}

void EventLoop::Watch::set(std::uint32_t events) {
  if (loop_ == nullptr) return;
  Slot& place = loop_->slots_[slot_];
  // Also because an edge-triggered one would be told again, at once, of what it knows.
  if (place.events == events) return;
  epoll_event event{};
  event.events = events;
  event.data.u64 = token_of(slot_, place.incarnation);
  if (::epoll_ctl(loop_->epoll_.get(), EPOLL_CTL_MOD, place.fd, &event) != 0) {
    report(Level::error, "epoll_ctl(EPOLL_CTL_MOD): {}", errno_name(errno));
    return;
  }
  place.events = events;
}

void EventLoop::Watch::reset() {
  if (loop_ == nullptr) return;
  EventLoop& loop = *std::exchange(loop_, nullptr);
  Slot& place = loop.slots_[slot_];
  ::epoll_ctl(loop.epoll_.get(), EPOLL_CTL_DEL, place.fd, nullptr);
  place.handler = nullptr;
  place.fd = -1;
  ++place.incarnation;
  loop.free_slots_.push_back(slot_);
}

EventLoop::Timer EventLoop::at(Clock::time_point when, Task task) {
  const Timer::Key key{when, next_timer_++};
  timers_.emplace(key, std::move(task));
  return {this, key};
}

void EventLoop::Timer::reset() {
  if (loop_ != nullptr) std::exchange(loop_, nullptr)->timers_.erase(key_);
}

bool EventLoop::Timer::armed() const { return loop_ != nullptr && loop_->timers_.contains(key_); }

void EventLoop::later(Task task) { later_.push_back(std::move(task)); }

// -1: nothing to wait for but descriptors. Rounded up, so that no turn finds the deadline not quite
// reached.
int EventLoop::timeout_ms() const {
  if (!later_.empty()) return 0;
  if (timers_.empty()) return -1;
  const auto left = timers_.begin()->first.first - Clock::now();
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::clamp<std::int64_t>(ms, 0, 3'600'000));
}

void EventLoop::fire_timers() {
  for (std::size_t fired = 0; fired < kTimersPerTurn && !timers_.empty(); ++fired) {
    const auto first = timers_.begin();
    if (first->first.first > now_) return;
    Task task = std::move(first->second);
    timers_.erase(first);
    task();
  }
}

void EventLoop::run_later() {
  std::vector<Task> tasks;
  tasks.swap(later_);  // what these add belongs to the next turn
  for (Task& task : tasks) task();
}

Result<> EventLoop::turn() {
  std::array<epoll_event, kEventsPerTurn> events;
  const int count =
      ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout_ms());
  if (count < 0 && errno != EINTR) return fail_errno("epoll_wait");
  now_ = Clock::now();
  for (int at = 0; at < count; ++at) {
    const epoll_event& event = events[static_cast<std::size_t>(at)];
    const std::uint64_t token = event.data.u64;
    const auto slot = static_cast<std::uint32_t>(token);
    const Slot& place = slots_[slot];
    if (place.handler == nullptr || token_of(slot, place.incarnation) != token) continue;
    place.handler->on_ready(event.events);
  }
  fire_timers();
  run_later();
  return {};
}

Result<> EventLoop::run() {
  stopped_ = false;
  while (!stopped_) {
    TRY(turn());
  }
  return {};
}

}  // namespace wc::daemon
