#include "api/progress.hpp"

namespace wc::api {
namespace {

constexpr std::chrono::milliseconds kInterval{100};

std::uint64_t rate_of(std::uint64_t bytes, std::chrono::nanoseconds time) {
  const double seconds = std::chrono::duration<double>(time).count();
  return seconds <= 0 ? 0 : static_cast<std::uint64_t>(static_cast<double>(bytes) / seconds);
}

}  // namespace

client::ProgressFunction ProgressTeller::waiting(bool always) {
  if (function_ == nullptr && !always) return {};
  return [this](const wire::fb::EntryInfoT& entry, std::uint64_t bytes_per_s) {
    waited_ = true;
    wc_progress progress{};
    progress.done_bytes = entry.done_bytes;
    progress.total_bytes = entry.total_bytes;
    progress.bytes_per_s = bytes_per_s;
    progress.waiting = 1;
    tell(progress);
  };
}

void ProgressTeller::reading(const load::Progress& reading) {
  wc_progress progress{};
  progress.done_bytes = reading.done_bytes;
  progress.total_bytes = reading.total_bytes;
  progress.bytes_per_s = rate_of(reading.done_bytes, reading.elapsed);
  tell(progress);
}

void ProgressTeller::tell(wc_progress progress) {
  if (function_ == nullptr) return;
  const auto now = Clock::now();
  const std::lock_guard lock(mutex_);
  const bool complete = progress.total_bytes > 0 && progress.done_bytes == progress.total_bytes;
  if (!complete && now - told_ < kInterval) return;
  told_ = now;
  progress.struct_size = sizeof progress;
  progress.elapsed_ns = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now - start_).count());
  function_(&progress, user_);
}

}  // namespace wc::api
