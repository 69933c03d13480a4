#include "base/kill_point.hpp"

#include <array>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <cstdlib>

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

namespace wc {
namespace {

// The times that are left of `NAME:N`, for this process and all that it forks together.
std::atomic<std::uint32_t>* shared_count() {
  void* page = ::mmap(nullptr, sizeof(std::atomic<std::uint32_t>), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return page == MAP_FAILED ? nullptr : static_cast<std::atomic<std::uint32_t>*>(page);
}

// Fixed room, so that an armed name can be read without a lock.
struct Armed {
  std::array<char, 64> name{};
  std::atomic<std::size_t> length = 0;
  std::atomic<std::atomic<std::uint32_t>*> left = nullptr;  // none: each time

  Armed() {
    const char* wanted = ::getenv("WEIGHTCACHE_KILL_AT");
    if (wanted != nullptr) set(wanted);
  }
  void set(std::string_view wanted) {
    length.store(0, std::memory_order_relaxed);
    left.store(nullptr, std::memory_order_relaxed);
    if (const auto colon = wanted.find(':'); colon != std::string_view::npos) {
      std::uint32_t times = 1;
      std::from_chars(wanted.data() + colon + 1, wanted.data() + wanted.size(), times);
      std::atomic<std::uint32_t>* count = shared_count();
      if (count != nullptr) count->store(times);
      left.store(count, std::memory_order_relaxed);
      wanted = wanted.substr(0, colon);
    }
    const auto bytes = wanted.size() < name.size() ? wanted.size() : 0;  // no point is that long
    wanted.copy(name.data(), bytes);
    length.store(bytes, std::memory_order_release);
  }
};

Armed& armed() {
  static Armed only;
  return only;
}

// Whether this is the time: the last one that was left.
bool due() {
  std::atomic<std::uint32_t>* left = armed().left.load(std::memory_order_relaxed);
  if (left == nullptr) return true;
  std::uint32_t times = left->load();
  while (times != 0 && !left->compare_exchange_weak(times, times - 1)) continue;
  return times == 1;
}

}  // namespace

void kill_point(std::string_view name) {
  const auto length = armed().length.load(std::memory_order_acquire);
  if (length == 0 || name != std::string_view(armed().name.data(), length)) [[likely]]
    return;
  if (!due()) return;
  ::kill(::getpid(), SIGKILL);
  ::pause();  // a signal to oneself may take a moment to arrive
}

void arm_kill_point(std::string_view name) { armed().set(name); }

}  // namespace wc
