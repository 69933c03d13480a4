// A forked child must not keep its parent's leases alive: its copies of the connections' sockets
// are closed as it starts. Registered with pthread_atfork() at the first connection, once. Inside
// this folder only.
//
// Thread rule: any thread. In the child nothing here takes a lock that another thread may have
// held.
#pragma once

#include <cstdint>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace wc::client {

class ForkGuard {
 public:
  /// Watches a socket until the guard goes. The socket must stay where it is. Errors: io.
  [[nodiscard]] Result<> watch(Fd& socket);

  ForkGuard() = default;
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;
  ~ForkGuard();

  /// This is a child of the process that called watch(): the socket has been closed here.
  [[nodiscard]] bool forked() const;

 private:
  friend struct ForkRegistry;
  Fd* socket_ = nullptr;  // nothing: not watching
  std::uint64_t forks_ = 0;
  ForkGuard* next_ = nullptr;
  ForkGuard* previous_ = nullptr;
};

}  // namespace wc::client
