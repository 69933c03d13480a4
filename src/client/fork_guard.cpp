#include "client/fork_guard.hpp"

#include <atomic>
#include <mutex>

#include <pthread.h>

namespace wc::client {

// Zero-initialised, trivially destroyed: usable at any time of the process's life.
struct ForkRegistry {
  std::mutex mutex;
  ForkGuard* first = nullptr;
  bool registered = false;
  std::atomic<std::uint64_t> forks{0};

  static void prepare();
  static void parent();
  static void child();
};

namespace {
constinit ForkRegistry registry;
}  // namespace

// The mutex is held across fork(), so that the child finds the list whole.
void ForkRegistry::prepare() { registry.mutex.lock(); }
void ForkRegistry::parent() { registry.mutex.unlock(); }
void ForkRegistry::child() {
  registry.forks.fetch_add(1);
  for (ForkGuard* guard = registry.first; guard != nullptr; guard = guard->next_)
    guard->socket_->reset();
  registry.first = nullptr;
  registry.mutex.unlock();
}

Result<> ForkGuard::watch(Fd& socket) {
  const std::lock_guard lock(registry.mutex);
  if (!registry.registered) {
    const int error =
        ::pthread_atfork(&ForkRegistry::prepare, &ForkRegistry::parent, &ForkRegistry::child);
    if (error != 0) return fail_os(Code::io, error, "pthread_atfork");
    registry.registered = true;
  }
  socket_ = &socket;
  forks_ = registry.forks.load();
  next_ = registry.first;
  if (next_ != nullptr) next_->previous_ = this;
  registry.first = this;
  return {};
}

bool ForkGuard::forked() const { return socket_ != nullptr && forks_ != registry.forks.load(); }

ForkGuard::~ForkGuard() {
  if (socket_ == nullptr) return;
  const std::lock_guard lock(registry.mutex);
  if (forked()) return;  // the child's list was emptied
  if (next_ != nullptr) next_->previous_ = previous_;
  (previous_ != nullptr ? previous_->next_ : registry.first) = next_;
}

}  // namespace wc::client
