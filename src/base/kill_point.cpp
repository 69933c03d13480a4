#include "base/kill_point.hpp"

#include <array>
#include <atomic>
#include <cstdlib>

#include <signal.h>
#include <unistd.h>

namespace wc {
namespace {

// Fixed room, so that an armed name can be read without a lock.
struct Armed {
  std::array<char, 64> name{};
  std::atomic<std::size_t> length = 0;

  Armed() {
    const char* wanted = ::getenv("WEIGHTCACHE_KILL_AT");
    if (wanted != nullptr) set(wanted);
  }
  void set(std::string_view wanted) {
    length.store(0, std::memory_order_relaxed);
    const auto bytes = wanted.size() < name.size() ? wanted.size() : 0;  // no point is that long
    wanted.copy(name.data(), bytes);
    length.store(bytes, std::memory_order_release);
  }
};

Armed& armed() {
  static Armed only;
  return only;
}

}  // namespace

void kill_point(std::string_view name) {
  const auto length = armed().length.load(std::memory_order_acquire);
  if (length == 0 || name != std::string_view(armed().name.data(), length)) [[likely]]
    return;
  ::kill(::getpid(), SIGKILL);
  ::pause();  // a signal to oneself may take a moment to arrive
}

void arm_kill_point(std::string_view name) { armed().set(name); }

}  // namespace wc
