#include "client/progress.hpp"

#include <algorithm>

#include "client/waiting.hpp"

namespace wc::client {

EventFunction events_to(const ProgressFunction& on_progress) {
  if (!on_progress) return {};
  return [&on_progress](const wire::fb::Message& message) {
    const auto progress = wire::body_as<wire::fb::ProgressT>(message);
    if (progress && progress->entry != nullptr)
      on_progress(*progress->entry, progress->rate_bytes_per_s);
  };
}

std::chrono::nanoseconds beyond(std::chrono::nanoseconds wait) {
  constexpr std::chrono::nanoseconds kMargin = std::chrono::seconds(5);
  return wait >= kNoLimit - kMargin ? kNoLimit : wait + kMargin;
}

std::uint64_t wire_timeout(std::chrono::nanoseconds wait) {
  if (wait == kNoLimit) return 0;
  const auto whole = std::chrono::ceil<std::chrono::milliseconds>(wait).count();
  return static_cast<std::uint64_t>(std::max<std::int64_t>(1, whole));
}

}  // namespace wc::client
