// A daemon for a test: serve() in a forked child, with a runtime directory of its own, stopped at
// the end. Its descriptors are counted when it has just become ready and when its clients have
// gone; a test that does not say that something stays resident fails on a difference.
#pragma once

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.hpp"
#include "base/kill_point.hpp"
#include "daemon/server.hpp"
#include "tests/support/temp_folder.hpp"

namespace wc::support {

struct DaemonOptions {
  std::filesystem::path socket;  // its folder exists
  daemon::ServeOptions serve;    // its socket is set from the above
  std::string kill_at;           // a kill point, armed in the daemon and its helper
  std::optional<rlim_t> open_files;
  bool supervised = false;    // most tests are of one process, which ends with all that it has
  std::filesystem::path log;  // stderr
};

/// One daemon process, from its readiness to its end.
class DaemonProcess {
 public:
  explicit DaemonProcess(const DaemonOptions& options) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) ADD_FAILURE() << "pipe2";
    const Fd ready(ends[0]);
    Fd tell(ends[1]);
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ == 0) run(options, parent, tell);
    tell.reset();
    pollfd readable{ready.get(), POLLIN, 0};
    char byte = 0;
    ready_ = pid_ > 0 && ::poll(&readable, 1, 20'000) == 1 && ::read(ready.get(), &byte, 1) == 1;
  }
  DaemonProcess(const DaemonProcess&) = delete;
  DaemonProcess& operator=(const DaemonProcess&) = delete;
  ~DaemonProcess() {
    if (pid_ <= 0) return;
    // A supervisor that is killed is replaced by its daemon: both are asked first.
    ::kill(pid_, SIGTERM);
    for (int patience = 1000; patience > 0 && ::waitpid(pid_, nullptr, WNOHANG) == 0; --patience) {
      ::poll(nullptr, 0, 5);
      if (patience == 1) end(SIGKILL);
    }
  }

  [[nodiscard]] bool ready() const { return ready_; }
  [[nodiscard]] pid_t pid() const { return pid_; }

  /// As waitpid() tells it.
  int wait() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
    pid_ = -1;
    return status;
  }
  int end(int signal) {
    ::kill(pid_, signal);
    return wait();
  }

  [[nodiscard]] std::size_t descriptors() const {
    std::size_t count = 0;
    std::error_code ignored;
    const std::filesystem::path folder = format("/proc/{}/fd", pid_);
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
      count += entry.path().empty() ? 0 : 1;
    }
    return count;
  }
  /// The first child that the daemon has: its helper.
  [[nodiscard]] pid_t helper() const {
    const std::string task = std::to_string(pid_);
    std::ifstream children("/proc/" + task + "/task/" + task + "/children");
    pid_t child = 0;
    children >> child;
    return child;
  }

  /// Waits for a helper to be there. Its pid; 0: none came.
  [[nodiscard]] pid_t kill_helper() const {
    for (int patience = 2000; patience > 0; --patience) {
      if (const pid_t child = helper(); child > 0) return ::kill(child, SIGKILL) == 0 ? child : 0;
      ::poll(nullptr, 0, 5);
    }
    return 0;
  }

 private:
  [[noreturn]] static void run(const DaemonOptions& options, pid_t parent, const Fd& tell) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    const Fd log(::open(options.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (log) ::dup2(log.get(), 2);
    if (options.open_files) {
      const rlimit limit{*options.open_files, *options.open_files};
      ::setrlimit(RLIMIT_NOFILE, &limit);
    }
    arm_kill_point(options.kill_at);
    daemon::ServeOptions serve = options.serve;
    serve.socket = options.socket;
    serve.supervised = options.supervised;
    serve.ready = [&](const daemon::Ready& ready) {
      if (options.serve.ready) options.serve.ready(ready);
      static_cast<void>(::write(tell.get(), "r", 1) == 1);
    };
    const auto served = daemon::serve(serve);
    if (!served) {
      const std::string line = served.error().message + "\n";
      static_cast<void>(::write(2, line.data(), line.size()) > 0);
    }
    ::_exit(served ? 0 : 1);
  }

  pid_t pid_ = -1;
  bool ready_ = false;
};

/// Tries again, a few milliseconds apart, until it holds or the patience is at its end.
inline bool eventually(const std::function<bool()>& holds,
                       std::chrono::milliseconds patience = std::chrono::seconds(10)) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > until) return false;
    ::poll(nullptr, 0, 5);
  }
  return true;
}

class DaemonTest : public ::testing::Test {
 protected:
  void TearDown() override {
    if (daemon_ && daemon_->pid() > 0) {
      if (!stays_resident_) {
        EXPECT_TRUE(eventually([&] { return daemon_->descriptors() == descriptors_before_; }))
            << "descriptors: " << descriptors_before_ << " before, " << daemon_->descriptors()
            << " after";
      }
      EXPECT_EQ(daemon_->end(SIGTERM), 0) << "the daemon did not end in order";
    }
    if (HasFailure()) std::cerr << "the daemon said:\n" << log();
  }

  /// Starts it anew, where it is not running.
  void start(DaemonOptions options = {}) {
    options.socket = socket();
    options.log = folder_ / "log";
    daemon_.emplace(options);
    ASSERT_TRUE(daemon_->ready()) << log();
    descriptors_before_ = daemon_->descriptors();
  }

  [[nodiscard]] std::filesystem::path socket() const { return folder_ / "run/socket"; }
  [[nodiscard]] DaemonProcess& daemon() { return *daemon_; }
  [[nodiscard]] std::string log() const {
    std::ifstream file(folder_ / "log");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// What the test leaves published may keep descriptors.
  void stays_resident() { stays_resident_ = true; }

 private:
  TempFolder folder_;
  std::optional<DaemonProcess> daemon_;
  std::size_t descriptors_before_ = 0;
  bool stays_resident_ = false;
};

}  // namespace wc::support
