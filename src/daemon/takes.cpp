#include "daemon/takes.hpp"

#include <algorithm>

#include "base/units.hpp"
#include "daemon/log.hpp"

namespace wc::daemon {
namespace {

Failure too_many_stalled(std::uint32_t uid) {
  return fail(Code::denied,
              "descriptors that user {} sent before still hold the daemon's helper: none is taken "
              "until they let go",
              uid);
}

}  // namespace

std::size_t Takes::stalled() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(under_way_, [](const auto& item) { return item.second.stalled; }));
}

Takes::Room Takes::room_for(std::uint32_t uid) const {
  std::size_t own = 0;
  std::size_t own_stalled = 0;
  for (const auto& [number, take] : under_way_) {
    if (take.uid != uid) continue;
    ++own;
    own_stalled += take.stalled ? 1 : 0;
  }
  if (own_stalled >= kMaxTakesOfUser || stalled() >= kMaxTakes) return Room::none;
  return own < kMaxTakesOfUser && under_way_.size() < kMaxTakes ? Room::now : Room::later;
}

void Takes::ask(Request request) {
  waiting_.push_back(std::move(request));
  loop_.later([this] { start_waiting(); });
}

// Those who can't start keep their order.
void Takes::start_waiting() {
  std::deque<Request> still;
  for (auto waiting = std::exchange(waiting_, {}); !waiting.empty(); waiting.pop_front()) {
    Request& request = waiting.front();
    switch (room_for(request.uid)) {
      case Room::now:
        start(std::move(request));
        break;
      case Room::later:
        still.push_back(std::move(request));
        break;
      case Room::none:
        taken_(request.session, too_many_stalled(request.uid));
        break;
    }
  }
  // What was asked for meanwhile comes behind.
  for (Request& request : waiting_) still.push_back(std::move(request));
  waiting_ = std::move(still);
}

void Takes::start(Request request) {
  const std::uint64_t number = next_++;
  UnderWay& take = under_way_[number];
  take.session = request.session;
  take.uid = request.uid;
  take.deadline = loop_.at(Clock::now() + limits_.take, [this, number] { on_deadline(number); });
  helper_.take(std::move(request.socket), [this, number](Result<HelperClient::Done> done) {
    answered(number, std::move(done));
  });
}

void Takes::answered(std::uint64_t number, Result<HelperClient::Done> done) {
  const auto found = under_way_.find(number);
  if (found == under_way_.end()) return;
  const UnderWay take = std::move(found->second);
  under_way_.erase(found);
  Result<std::vector<Fd>> taken = done ? Result<std::vector<Fd>>(std::move(done->descriptors))
                                       : Failure(std::move(done).error());
  if (!take.stalled) {
    taken_(take.session, std::move(taken));
  } else if (taken && !taken->empty()) {  // too late for its session, and no memory of anybody's
    helper_.release(std::move(*taken), {});
  }
  start_waiting();
}

void Takes::on_deadline(std::uint64_t number) {
  const auto found = under_way_.find(number);
  if (found == under_way_.end()) return;
  found->second.stalled = true;
  const UnderWay& take = found->second;
  const std::chrono::nanoseconds limit = limits_.take;
  report(Level::warning, "a descriptor of user {} holds a child of the helper for {}", take.uid,
         format_duration(limit));
  taken_(take.session,
         fail(Code::timed_out,
              "the descriptor did not let itself be looked at within {}: is it a file on a file "
              "system that stalls?",
              format_duration(limit)));
  start_waiting();
}

}  // namespace wc::daemon
