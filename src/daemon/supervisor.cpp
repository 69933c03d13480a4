#include "daemon/supervisor.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/kill_point.hpp"
#include "base/units.hpp"
#include "daemon/log.hpp"
#include "daemon/process.hpp"
#include "daemon/signals.hpp"

namespace wc::daemon {
namespace {

using namespace std::chrono_literals;

constexpr auto kLongEnough = 1s;  // a daemon that lived so long is started again at once
constexpr std::chrono::milliseconds kShortestPause = 20ms;
constexpr std::chrono::milliseconds kLongestPause = 2s;

void signal_process(FdView process, int number) {
  ::syscall(SYS_pidfd_send_signal, process.get(), number, nullptr, 0);
}

// What may be the last holder of memory is closed by a child, which nobody waits for: this process
// must start the next daemon, not give memory back.
void close_elsewhere(std::vector<Fd> holders) {
  if (holders.empty()) return;
  int gate[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, gate) != 0) return;
  Fd mine(gate[0]);
  Fd theirs(gate[1]);
  if (::fork() == 0) {
    mine.reset();
    char nothing = 0;
    static_cast<void>(::recv(theirs.get(), &nothing, 1, 0));  // until the parent's are closed
    ::_exit(0);
  }
  holders.clear();
}

std::vector<int> numbers_of(const std::vector<FdView>& views, const Shelf& shelf) {
  std::vector<int> numbers;
  for (const FdView view : views) numbers.push_back(view.get());
  for (const auto& [key, item] : shelf) {
    for (const Fd& descriptor : item.descriptors) numbers.push_back(descriptor.get());
  }
  return numbers;
}

}  // namespace

Result<LinkEnds> make_link() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return fail_errno("socketpair(AF_UNIX, SOCK_SEQPACKET)");
  return LinkEnds{Fd(ends[0]), Fd(ends[1])};
}

Result<> Supervisor::start() {
  auto link = TRY(make_link());
  ended_ = false;
  batch_.clear();
  started_ = std::chrono::steady_clock::now();
  kill_point("supervisor.starting");
  const pid_t child = ::fork();
  if (child < 0) return fail_os(Code::exhausted, errno, "fork of the daemon");
  if (child == 0) {
    std::vector<int> kept = numbers_of(options_.shared, shelf_);
    kept.push_back(link.daemon.get());
    close_all_but(std::move(kept));
    ::signal(SIGCHLD, SIG_DFL);
    ::_exit(options_.daemon(link.daemon, shelf_));
  }
  pid_ = child;
  process_ = TRY(pidfd_of(child));
  link_ = std::move(link.supervisor);
  kill_point("supervisor.started");
  return {};
}

Result<> Supervisor::run(FdView signals) {
  TRY(start());
  while (!over_) TRY(turn(signals));
  return {};
}

Result<> Supervisor::run_beside(Fd link, Fd process, FdView signals) {
  link_ = std::move(link);
  process_ = std::move(process);
  said_ready_ = true;
  started_ = std::chrono::steady_clock::now();
  while (!over_) TRY(turn(signals));
  return {};
}

Result<> Supervisor::turn(FdView signals) {
  std::array<pollfd, 3> ready = {
      {{link_.get(), POLLIN, 0}, {process_.get(), POLLIN, 0}, {signals.get(), POLLIN, 0}}};
  if (::poll(ready.data(), ready.size(), -1) < 0 && errno != EINTR) return fail_errno("poll");
  if (ready[2].revents != 0) pass_on(signals);
  const bool gone = ready[1].revents != 0 || (ready[0].revents & (POLLHUP | POLLERR)) != 0;
  if (ready[0].revents != 0) receive();
  return gone ? on_death() : Result<>{};
}

void Supervisor::pass_on(FdView signals) {
  signalfd_siginfo info{};
  while (::read(signals.get(), &info, sizeof info) == sizeof info)
    signal_process(process_, static_cast<int>(info.ssi_signo));
}

// Whatever has come, as far as it is whole.
void Supervisor::receive() {
  const auto buffer = std::make_unique<wire::PacketBuffer>();
  for (;;) {
    wire::Packet packet;
    const auto receipt = wire::receive_packet(link_, buffer->bytes, wire::kMaxDescriptors, packet);
    if (!receipt || *receipt != wire::Receipt::packet) return;
    auto message = decode_link(packet.bytes, std::move(packet.descriptors));
    if (message) {
      take(std::move(*message));
    } else {
      report(Level::error, "the supervisor was sent what it can't read: {}",
             message.error().message);
    }
  }
}

void Supervisor::take(LinkMessage message) {
  switch (message.word) {
    case LinkWord::change: {
      kill_point("supervisor.received");
      for (Change& change : message.changes) batch_.push_back(std::move(change));
      if (!message.last) return;
      make_own();
      kill_point("supervisor.kept");
      LinkMessage answer;
      answer.word = LinkWord::acknowledged;
      answer.number = message.number;
      const std::string bytes = encode_link(answer);
      // The daemon never has many on their way; one that is dead needs no answer.
      static_cast<void>(wire::send_packet(link_, std::as_bytes(std::span(bytes))));
      kill_point("supervisor.acknowledged");
      return;
    }
    case LinkWord::ready:
      if (!std::exchange(said_ready_, true) && options_.ready) options_.ready(pid_, message.text);
      return;
    case LinkWord::failed:
      failed_ = Error{code_of(-static_cast<int>(message.number)), std::move(message.text), {}};
      return;
    case LinkWord::ended:
      ended_ = true;
      return;
    default:
      return;
  }
}

void Supervisor::make_own() {
  std::vector<Fd> former;
  for (Change& change : std::exchange(batch_, {})) {
    for (Fd& descriptor : apply(shelf_, std::move(change))) former.push_back(std::move(descriptor));
  }
  // The daemon closes its own later than these, so that none is the last one here.
}

Result<> Supervisor::on_death() {
  receive();
  if (ended_) {  // until its process has really ended
    siginfo_t info{};
    while (::waitid(P_PIDFD, static_cast<id_t>(process_.get()), &info, WEXITED) != 0 &&
           errno == EINTR)
      continue;
    over_ = true;
    return {};
  }
  if (!said_ready_ && failed_) return Failure(std::move(*failed_));
  signal_process(process_, SIGKILL);
  link_.reset();
  std::vector<Fd> unclaimed;
  for (Change& change : std::exchange(batch_, {})) {
    for (Fd& descriptor : change.descriptors) unclaimed.push_back(std::move(descriptor));
  }
  const auto lived = std::chrono::steady_clock::now() - started_;
  pause_ = lived >= kLongEnough ? 0ms : pause_;
  report(Level::error, "the daemon (pid {}) died after {}: the next one starts {} with {} items",
         pid_, format_duration(lived),
         pause_ == 0ms ? std::string("at once") : format("in {}", format_duration(pause_)),
         format_count(shelf_.size()));
  ::poll(nullptr, 0, static_cast<int>(pause_.count()));
  pause_ = std::clamp(2 * pause_, kShortestPause, kLongestPause);
  auto started = start();
  while (!started) {
    report(Level::error, "cannot start the daemon: {}", started.error().message);
    ::poll(nullptr, 0, static_cast<int>(kLongestPause.count()));
    started = start();
  }
  close_elsewhere(std::move(unclaimed));
  return {};
}

Result<ForkedSupervisor> fork_supervisor(const Supervisor::Options& options) {
  auto link = TRY(make_link());
  Fd self = TRY(pidfd_of(::getpid()));
  const pid_t child = ::fork();
  if (child < 0) return fail_os(Code::exhausted, errno, "fork of the supervisor");
  if (child != 0) return ForkedSupervisor{child, std::move(link.daemon)};
  std::vector<int> kept = numbers_of(options.shared, {});
  kept.push_back(link.supervisor.get());
  kept.push_back(self.get());
  close_all_but(std::move(kept));
  ::signal(SIGCHLD, SIG_IGN);
  set_process_title("weightcache: supervisor");
  ::prctl(PR_SET_NAME, "wc-supervisor");
  auto signals = EndSignals::take();
  if (!signals) ::_exit(1);
  Supervisor supervisor(options);
  const auto done =
      supervisor.run_beside(std::move(link.supervisor), std::move(self), signals->descriptor());
  if (!done) report(Level::error, "the supervisor ends: {}", done.error().message);
  ::_exit(done ? 0 : 1);
}

}  // namespace wc::daemon
