#include "daemon/keeper.hpp"

#include <utility>

#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/kill_point.hpp"
#include "base/units.hpp"
#include "daemon/log.hpp"
#include "daemon/process.hpp"

namespace wc::daemon {
namespace {

using namespace std::chrono_literals;

constexpr auto kInFlightRetry = 2ms;
constexpr auto kForkRetry = 1s;

}  // namespace

Result<std::unique_ptr<Keeper>> Keeper::create(EventLoop& loop, Fd link,
                                               const Supervisor::Options& family) {
  auto keeper = std::make_unique<Keeper>(loop, std::move(link), family);
  keeper->watch_ = TRY(loop.watch(keeper->link_, EPOLLIN, keeper->on_link_));
  return keeper;
}

void Keeper::put(const ShelfKey& key, std::string bytes, std::vector<FdView> views) {
  Change change;
  change.key = key;
  change.bytes = std::move(bytes);
  change.views = std::move(views);
  changes_.push_back(std::move(change));
}

void Keeper::put_owned(const ShelfKey& key, std::string bytes, std::vector<Fd> owned) {
  Change change;
  change.key = key;
  change.bytes = std::move(bytes);
  change.owned = std::move(owned);
  changes_.push_back(std::move(change));
}

void Keeper::drop(const ShelfKey& key) {
  Change change;
  change.step = Change::Step::drop;
  change.key = key;
  changes_.push_back(std::move(change));
}

void Keeper::drop_group(Shelved kind, std::uint64_t group) {
  Change change;
  change.step = Change::Step::drop_group;
  change.key = {kind, group, 0};
  changes_.push_back(std::move(change));
}

void Keeper::commit() {
  if (changes_.empty()) return;
  const std::uint64_t number = ++last_;
  if (!link_) {  // nobody keeps anything: said when it began
    changes_.clear();
    return acknowledge(number);
  }
  auto messages = pack_batch(number, std::exchange(changes_, {}));
  if (!messages) {
    report(Level::error, "cannot tell the supervisor: {}", messages.error().message);
    return acknowledge(number);
  }
  for (LinkMessage& message : *messages) {
    Outgoing out;
    out.bytes = encode_link(message);
    for (Change& change : message.changes) {
      for (Fd& owned : change.owned) {
        out.views.push_back(owned);
        out.owned.push_back(std::move(owned));
      }
      out.views.insert(out.views.end(), change.views.begin(), change.views.end());
    }
    queue_.push_back(std::move(out));
  }
  kill_point("daemon.committing");
  send();
}

void Keeper::send() {
  while (!queue_.empty() && link_ && !retry_.armed()) {
    const Outgoing& next = queue_.front();
    const auto sent = wire::send_packet(link_, std::as_bytes(std::span(next.bytes)), next.views);
    if (!sent) {  // it is dying, which the link tells
      if (sent.error().code != Code::disconnected)
        report(Level::error, "cannot tell the supervisor: {}", sent.error().message);
      break;
    }
    if (*sent == wire::Sent::would_block) return watch_.set(EPOLLIN | EPOLLOUT);
    if (*sent == wire::Sent::descriptors_in_flight) {
      retry_ = loop_.at(Clock::now() + kInFlightRetry, [this] { send(); });
      return;
    }
    queue_.pop_front();
    kill_point("daemon.committed");
  }
  watch_.set(EPOLLIN);
}

void Keeper::receive() {
  while (link_) {
    wire::Packet packet;
    const auto receipt = wire::receive_packet(link_, buffer_->bytes, 0, packet);
    if (receipt && *receipt == wire::Receipt::would_block) return;
    if (!receipt || *receipt == wire::Receipt::end) return renew();
    const auto message = decode_link(packet.bytes, {});
    if (message && message->word == LinkWord::acknowledged) {
      kill_point("daemon.acknowledged");
      acknowledge(message->number);
    }
  }
}

void Keeper::acknowledge(std::uint64_t batch) {
  if (batch <= acknowledged_) return;
  acknowledged_ = batch;
  while (!tasks_.empty() && tasks_.begin()->first <= acknowledged_) {
    auto due = tasks_.extract(tasks_.begin());
    for (Task& task : due.mapped()) loop_.later(std::move(task));
  }
  if (hooks_.acknowledged) hooks_.acknowledged();
}

void Keeper::after(std::uint64_t batch, Task task) {
  if (acknowledged(batch)) return loop_.later(std::move(task));
  tasks_[batch].push_back(std::move(task));
}

// Its successor has nothing: everything goes there in one batch, and what waits for an older one
// waits for that.
void Keeper::renew() {
  watch_.reset();
  link_.reset();
  queue_.clear();
  retry_.reset();
  if (supervisor_ > 0) ::waitpid(std::exchange(supervisor_, 0), nullptr, 0);
  report(Level::error, "the supervisor died: another one is started");
  auto link = fork_supervisor(family_);
  Result<> watched;
  if (link) {
    link_ = std::move(link->link);
    supervisor_ = link->pid;
    auto watch = loop_.watch(link_, EPOLLIN, on_link_);
    if (watch) {
      watch_ = std::move(*watch);
    } else {
      watched = Failure(watch.error());
    }
  } else {
    watched = Failure(link.error());
  }
  if (!watched) {
    report(Level::error,
           "no supervisor can be started, so a crash of the daemon would cost the "
           "memory: {}",
           watched.error().message);
    link_.reset();
    retry_ = loop_.at(Clock::now() + kForkRetry, [this] { renew(); });
    changes_.clear();
    return acknowledge(last_);
  }
  kill_point("daemon.renewing");
  changes_.clear();
  if (hooks_.put_all) hooks_.put_all();
  commit();
}

void Keeper::say(LinkWord word, std::string text) {
  LinkMessage message;
  message.word = word;
  message.text = std::move(text);
  queue_.push_back({encode_link(message), {}, {}});
  send();
}

}  // namespace wc::daemon
