#include "cli/signals.hpp"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <string_view>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fd.hpp"

namespace wc::cli {
namespace {

// What the handler may touch. The descriptor and the cancellation live as long as the process.
constinit std::atomic<wc_cancellation*> cancels{nullptr};
constinit std::atomic<int> arrived_fd{-1};
constinit std::atomic<bool> arrived{false};
constinit std::atomic<bool> speaks_json{false};

static_assert(std::atomic<wc_cancellation*>::is_always_lock_free);

void put(int fd, std::string_view text) {
  [[maybe_unused]] const ssize_t written = ::write(fd, text.data(), text.size());
}

[[noreturn]] void leave_at_once() {
  put(STDERR_FILENO, "weightcache: cancelled: interrupted by a signal\n");
  if (speaks_json) {
    put(STDOUT_FILENO, R"({"error":{"code":"cancelled","message":"interrupted by a signal"}})"
                       "\n");
  }
  ::_exit(1);
}

extern "C" void on_signal(int) {
  const int saved = errno;
  wc_cancellation* const cancellation = cancels;
  if (cancellation == nullptr || arrived.exchange(true)) leave_at_once();
  wc_cancel(cancellation);
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(arrived_fd, &one, sizeof one);
  errno = saved;
}

}  // namespace

Result<Signals> Signals::install(bool json) {
  auto cancellation =
      TRY(made<Cancellation>([](wc_cancellation** out) { return wc_cancellation_new(out); }));
  Fd event(::eventfd(0, EFD_CLOEXEC));
  if (!event) return fail_errno("eventfd");
  arrived_fd = event.release();  // the handler may run until the very end
  speaks_json = json;
  struct sigaction action{};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (const int number : {SIGINT, SIGTERM}) {
    struct sigaction before{};
    // A signal that the starter chose to ignore (nohup, a background job) stays ignored.
    if (::sigaction(number, nullptr, &before) != 0) return fail_errno("sigaction");
    if (before.sa_handler == SIG_IGN) continue;
    if (::sigaction(number, &action, nullptr) != 0) return fail_errno("sigaction");
  }
  return Signals(std::move(cancellation));
}

wc_cancellation* Signals::cancellation() {
  cancels = cancellation_.get();
  return cancellation_.get();
}

Result<> Signals::wait() {
  cancels = cancellation_.get();
  pollfd event{.fd = arrived_fd, .events = POLLIN, .revents = 0};
  while (::poll(&event, 1, -1) < 0) {
    if (errno != EINTR) return fail_errno("poll");
  }
  return {};
}

}  // namespace wc::cli
