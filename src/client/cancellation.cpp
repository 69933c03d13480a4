#include "client/cancellation.hpp"

#include <cstdint>

#include <sys/eventfd.h>
#include <unistd.h>

namespace wc::client {

Result<std::unique_ptr<Cancellation>> Cancellation::create() {
  Fd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) return fail_errno("eventfd");
  return std::make_unique<Cancellation>(std::move(event));
}

void Cancellation::cancel() noexcept {
  const int before = errno;
  cancelled_.store(true);
  const std::uint64_t one = 1;
  // It can only fail where the counter is full, and then the event is readable already.
  [[maybe_unused]] const auto written = ::write(event_.get(), &one, sizeof one);
  errno = before;
}

}  // namespace wc::client
