#include "daemon/signals.hpp"

#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace wc::daemon {

Result<EndSignals> EndSignals::take() {
  sigset_t ends;
  ::sigemptyset(&ends);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&ends, number);
  Fd descriptor(::signalfd(-1, &ends, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!descriptor) return fail_errno("signalfd");
  EndSignals taken(std::move(descriptor));
  if (::sigprocmask(SIG_BLOCK, &ends, &taken.mask_before_) != 0) return fail_errno("sigprocmask");
  struct sigaction ignore{};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &taken.pipe_before_);
  return taken;
}

EndSignals::EndSignals(EndSignals&& other) noexcept
    : descriptor_(std::move(other.descriptor_)),
      mask_before_(other.mask_before_),
      pipe_before_(other.pipe_before_) {}

EndSignals::~EndSignals() {
  if (!descriptor_) return;
  ::sigaction(SIGPIPE, &pipe_before_, nullptr);
  ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

std::optional<std::string> EndSignals::next() {
  signalfd_siginfo info{};
  if (::read(descriptor_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  const char* name = ::sigabbrev_np(static_cast<int>(info.ssi_signo));
  return format("SIG{} of pid {}", name != nullptr ? name : "?", info.ssi_pid);
}

}  // namespace wc::daemon
