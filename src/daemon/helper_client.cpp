#include "daemon/helper_client.hpp"

#include <algorithm>

#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/units.hpp"
#include "daemon/log.hpp"

namespace wc::daemon {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMaxInFlight = 32;  // processes at work at one time
constexpr std::size_t kAnswersPerTurn = 16;
constexpr auto kDescriptorsRetry = 2ms;
// A helper that dies at once is started again at growing intervals.
constexpr auto kLongLife = 1s;
constexpr std::chrono::milliseconds kFirstPause = 20ms;
constexpr std::chrono::milliseconds kLastPause = 2s;

}  // namespace

Result<std::unique_ptr<HelperClient>> HelperClient::create(EventLoop& loop, HelperProcess process) {
  auto client = std::make_unique<HelperClient>(Made{}, loop);
  TRY(client->adopt(std::move(process)));
  return client;
}

HelperClient::~HelperClient() { end_helper(); }

std::string HelperClient::end_helper() {
  socket_watch_.reset();
  process_watch_.reset();
  return process_.end();
}

Result<> HelperClient::adopt(HelperProcess process) {
  process_ = std::move(process);
  process_.settled.reset();
  started_ = Clock::now();
  socket_watch_ = TRY(loop_.watch(process_.socket, EPOLLIN, on_socket_));
  process_watch_ = TRY(loop_.watch(process_.process, EPOLLIN, on_process_));
  return {};
}

std::uint64_t HelperClient::expect(Job& job, Answer answer) {
  job.number = next_number_++;
  waiting_[job.number] = Waiting{std::move(answer), job.kind, false};
  return job.number;
}

void HelperClient::ask(Outgoing out, Answer answer) {
  expect(out.job, std::move(answer));
  queue_.push_back(std::move(out));
  schedule_pump();
}

void HelperClient::reserve(std::span<const std::uint64_t> sizes, std::uint64_t manifest_bytes,
                           Answer answer) {
  Outgoing out;
  out.job.kind = JobKind::reserve;
  out.job.segments = static_cast<std::uint16_t>(std::min(sizes.size(), out.job.bytes.size()));
  std::ranges::copy(sizes.first(out.job.segments), out.job.bytes.begin());
  out.job.manifest_bytes = manifest_bytes;
  ask(std::move(out), std::move(answer));
}

void HelperClient::seal(const SealRequest& request, Answer answer) {
  Outgoing out;
  out.job.kind = JobKind::seal;
  out.job.transport = request.transport;
  out.job.segments =
      static_cast<std::uint16_t>(std::min(request.sizes.size(), out.job.bytes.size()));
  std::ranges::copy(request.sizes.first(out.job.segments), out.job.bytes.begin());
  request.fingerprint.copy(out.job.fingerprint.data(), out.job.fingerprint.size());
  out.views.assign(request.writable.begin(), request.writable.end());
  ask(std::move(out), std::move(answer));
}

void HelperClient::hold(std::string_view device, Answer answer) {
  Outgoing out;
  out.job.kind = JobKind::hold;
  set_device(out.job, device);
  ask(std::move(out), std::move(answer));
}

void HelperClient::take(Fd socket, Answer answer) {
  Outgoing out;
  out.job.kind = JobKind::take;
  out.owned.push_back(std::move(socket));
  out.views.assign(out.owned.begin(), out.owned.end());
  ask(std::move(out), std::move(answer));
}

// Two packets: when the second has been read, the helper alone holds what came with the first, and
// this process has closed its own copies while they could not be the last.
void HelperClient::release(std::vector<Fd> holders, std::move_only_function<void()> done) {
  Outgoing keep;
  keep.job.kind = JobKind::keep;
  Outgoing drop;
  drop.job.kind = JobKind::drop;
  keep.job.number = expect(drop.job, [done = std::move(done)](const Result<Done>&) mutable {
    if (done) done();
  });
  keep.owned = std::move(holders);
  keep.views.assign(keep.owned.begin(), keep.owned.end());
  if (!keep.owned.empty()) queue_.push_back(std::move(keep));
  queue_.push_back(std::move(drop));
  schedule_pump();
}

void HelperClient::schedule_pump() {
  if (std::exchange(pump_scheduled_, true)) return;
  loop_.later([this] {
    pump_scheduled_ = false;
    pump();
  });
}

void HelperClient::pump() {
  while (!queue_.empty() && process_.socket && !retry_.armed()) {
    Outgoing& next = queue_.front();
    if (next.job.kind != JobKind::keep && in_flight_ >= kMaxInFlight) break;
    const auto sent = send_job(process_.socket, next.job, next.views);
    if (!sent) return;  // it is dying: its process tells
    if (*sent == wire::Sent::would_block) {
      socket_watch_.set(EPOLLIN | EPOLLOUT);
      return;
    }
    if (*sent == wire::Sent::descriptors_in_flight) {
      retry_ = loop_.at(Clock::now() + kDescriptorsRetry, [this] { pump(); });
      break;
    }
    if (next.job.kind != JobKind::keep) {
      waiting_[next.job.number].sent = true;
      ++in_flight_;
    }
    queue_.pop_front();
  }
  socket_watch_.set(EPOLLIN);
}

bool HelperClient::receive_answers() {
  for (std::size_t count = 0; count < kAnswersPerTurn; ++count) {
    auto received = receive_job(process_.socket, *buffer_);
    if (!received) {
      // An answer is lost, and with it whose it was. What it had will be failed with it.
      report(Level::error, "cannot receive from the helper, which is replaced: {}",
             received.error().message);
      socket_watch_.reset();
      ::syscall(SYS_pidfd_send_signal, process_.process.get(), SIGKILL, nullptr, 0);
      return false;
    }
    if (received->receipt == wire::Receipt::end) socket_watch_.reset();
    if (received->receipt != wire::Receipt::packet) return false;
    const std::uint64_t number = received->job.number;
    if (received->job.code != 0) {
      finish(number, Failure(failure_of(received->job)));
    } else {
      finish(number, Done{received->job, std::move(received->descriptors)});
    }
  }
  return true;
}

void HelperClient::finish(std::uint64_t number, Result<Done> result) {
  const auto found = waiting_.find(number);
  if (found == waiting_.end()) return;  // the process died after it had answered
  Waiting waiting = std::move(found->second);
  waiting_.erase(found);
  if (waiting.sent) --in_flight_;
  waiting.answer(std::move(result));
}

void HelperClient::fail_sent(const Error& error) {
  std::vector<std::uint64_t> sent;
  for (const auto& [number, waiting] : waiting_) {
    if (waiting.sent) sent.push_back(number);
  }
  // A drop whose keep went to the dead one has nothing left to drop: the next helper, which knows
  // no keep of that number, answers it at once.
  for (const std::uint64_t number : sent) finish(number, Failure(error));
}

void HelperClient::on_death() {
  while (receive_answers()) continue;  // what its children said before
  const std::string how = end_helper();
  report(Level::error, "the helper (pid {}) ended: {}; {} jobs fail", process_.pid, how,
         format_count(in_flight_));
  fail_sent(
      Error{Code::busy, format("the daemon's helper process ended ({}); try again", how), {}});
  if (Clock::now() - started_ > kLongLife) pause_ = 0ms;
  restart_later();
}

void HelperClient::restart_later() {
  retry_ = loop_.at(Clock::now() + pause_, [this] { restart(); });
  pause_ = std::clamp(2 * pause_, kFirstPause, kLastPause);
}

void HelperClient::restart() {
  auto process = fork_helper();
  Result<> adopted = process ? adopt(std::move(*process)) : Failure(process.error());
  if (!adopted) {
    report(Level::error, "cannot start a helper: {}", adopted.error().message);
    end_helper();
    restart_later();
    return;
  }
  pump();
}

}  // namespace wc::daemon
