#include "daemon/helper.hpp"

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/kill_point.hpp"
#include "daemon/helper_jobs.hpp"
#include "daemon/process.hpp"

namespace wc::daemon {
namespace {

constexpr std::size_t kMaxChildren = 64;

class Helper {
 public:
  Helper(FdView socket, Fd signals) : socket_(socket), signals_(std::move(signals)) {}

  // Until the daemon is gone.
  void run() {
    bool open = true;
    while (open) {
      const bool room = children_.size() < kMaxChildren;
      std::array<pollfd, 2> ready = {
          {{signals_.get(), POLLIN, 0}, {socket_.get(), static_cast<short>(room ? POLLIN : 0), 0}}};
      if (::poll(ready.data(), ready.size(), -1) < 0 && errno != EINTR) return;
      if (ready[0].revents != 0) reap();
      if (ready[1].revents != 0) open = take_job();
    }
  }

 private:
  bool take_job() {
    auto received = receive_job(socket_, buffer_);
    if (!received || received->receipt == wire::Receipt::end) return false;
    if (received->receipt == wire::Receipt::would_block) return true;
    kill_point("helper.job");
    const Job& job = received->job;
    auto descriptors = std::move(received->descriptors);
    if (job.kind == JobKind::keep) {
      kept_[job.number] = std::move(descriptors);
      return true;
    }
    if (job.kind == JobKind::drop) {
      const auto found = kept_.find(job.number);
      if (found != kept_.end()) {
        descriptors = std::move(found->second);
        kept_.erase(found);
      }
    }
    auto started = start(job, std::move(descriptors));
    if (!started) tell_failure(job, started.error());
    return true;
  }

  // The child must have closed its copies of what other jobs' children are to be the last holders
  // of, and this process its copies of what this child is, before either goes on.
  Result<> start(const Job& job, std::vector<Fd> descriptors) {
    int gate[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, gate) != 0) {
      return fail_errno("socketpair");
    }
    Fd mine(gate[0]);
    Fd theirs(gate[1]);
    const pid_t self = ::getpid();
    const pid_t child = ::fork();
    if (child < 0) return fail_os(Code::exhausted, errno, "fork of the helper");
    if (child == 0) {
      mine.reset();
      die_with_parent(self);
      run_child(job, std::move(descriptors), std::move(theirs));
    }
    children_[child] = job;
    theirs.reset();
    char ready = 0;
    while (::recv(mine.get(), &ready, 1, 0) < 0 && errno == EINTR) continue;
    descriptors.clear();
    mine.reset();  // the gate opens
    return {};
  }

  [[noreturn]] void run_child(const Job& job, std::vector<Fd> descriptors, Fd gate) {
    std::vector<int> kept = {socket_.get(), gate.get()};
    for (const Fd& descriptor : descriptors) kept.push_back(descriptor.get());
    close_all_but(std::move(kept));
    reset_signals();
    char nothing = 0;
    if (::send(gate.get(), &nothing, 1, MSG_NOSIGNAL) != 1) ::_exit(1);
    while (::recv(gate.get(), &nothing, 1, 0) < 0 && errno == EINTR) continue;
    gate.reset();
    ::_exit(run_job(socket_, job, std::move(descriptors)) ? 0 : 1);
  }

  void reap() {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == sizeof info) continue;
    int status = 0;
    for (pid_t child = 0; (child = ::waitpid(-1, &status, WNOHANG)) > 0;) {
      const auto found = children_.find(child);
      if (found == children_.end()) continue;
      const Job job = found->second;
      children_.erase(found);
      if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) tell_failure(job, death_of(job, status));
    }
  }

  static Error death_of(const Job& job, int status) {
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
      return Error{Code::exhausted,
                   format("{}: its process was killed (SIGKILL): the kernel's out-of-memory killer "
                          "does that where a limit of the control group is passed",
                          describe(job)),
                   "SIGKILL"};
    }
    if (WIFSIGNALED(status)) {
      const char* name = ::sigabbrev_np(WTERMSIG(status));
      return Error{Code::internal,
                   format("{}: its process died of signal {}", describe(job), WTERMSIG(status)),
                   format("SIG{}", name != nullptr ? name : "?")};
    }
    return Error{Code::internal, format("{}: its process could not answer", describe(job)), {}};
  }

  void tell_failure(const Job& job, const Error& error) {
    Job answer = job;
    set_failure(answer, error);
    static_cast<void>(send_job_waiting(socket_, answer, {}));  // else the daemon is gone
  }

  FdView socket_;
  Fd signals_;
  wire::PacketBuffer buffer_;
  std::map<pid_t, Job> children_;
  std::map<std::uint64_t, std::vector<Fd>> kept_;
};

[[noreturn]] void run_helper(Fd socket, pid_t daemon) {
  reset_signals();
  die_with_parent(daemon);
  close_all_but({socket.get()});
  // A terminal's signals are for the daemon, which may still have work for its helper.
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(number, SIG_IGN);
  set_process_title("weightcache: helper");
  ::prctl(PR_SET_NAME, "wc-helper");
  sigset_t child_ends;
  ::sigemptyset(&child_ends);
  ::sigaddset(&child_ends, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &child_ends, nullptr);
  Fd signals(::signalfd(-1, &child_ends, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals) ::_exit(1);
  std::make_unique<Helper>(socket, std::move(signals))->run();
  ::_exit(0);
}

}  // namespace

void wait_until_settled(Fd settled) {
  char nothing = 0;
  while (settled && ::read(settled.get(), &nothing, 1) < 0 && errno == EINTR) continue;
}

std::string HelperProcess::end() {
  if (!process) return {};
  socket.reset();  // its end; its children go with it
  siginfo_t info{};
  const Fd gone = std::move(process);
  if (::waitid(P_PIDFD, static_cast<id_t>(gone.get()), &info, WEXITED) != 0) {
    return errno_name(errno);
  }
  return info.si_code == CLD_EXITED ? format("exit status {}", info.si_status)
                                    : format("signal {}", info.si_status);
}

Result<HelperProcess> fork_helper() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return fail_errno("socketpair(AF_UNIX, SOCK_SEQPACKET)");
  }
  Fd mine(ends[0]);
  Fd theirs(ends[1]);
  int closing[2];
  if (::pipe2(closing, O_CLOEXEC) != 0) return fail_errno("pipe2");
  Fd settled(closing[0]);
  Fd open_until_settled(closing[1]);
  const pid_t daemon = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return fail_os(Code::exhausted, errno, "fork of the helper");
  if (child == 0) run_helper(std::move(theirs), daemon);  // closes the pipe with all the rest
  Fd process = TRY(pidfd_of(child));
  open_until_settled.reset();
  HelperProcess helper{child, std::move(process), std::move(mine)};
  helper.settled = std::move(settled);
  return helper;
}

}  // namespace wc::daemon
