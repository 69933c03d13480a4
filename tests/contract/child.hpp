// The second process of a case: this program, started again with a verb, holding one end of a
// socket pair. Handles and single bytes cross it; nothing else does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/fd.hpp"
#include "base/result.hpp"
#include "memory/types.hpp"

namespace wc::contract {

/// How a child ended that did what it was asked to; a fault is told apart from a failed check.
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kFaulted = 42;  // a store was refused with an error instead of a signal

class Child {
 public:
  /// Starts VERB with numbers as its arguments.
  static Result<Child> start(const std::string& device, const std::string& verb,
                             const std::vector<std::uint64_t>& numbers = {});
  Child(Child&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), socket_(std::move(other.socket_)) {}
  Child& operator=(Child&&) = delete;
  ~Child();

  [[nodiscard]] FdView socket() const { return socket_; }
  void kill();
  /// Waits for its end: its exit status, or minus the signal that ended it.
  [[nodiscard]] int wait();

 private:
  Child(pid_t pid, Fd socket) : pid_(pid), socket_(std::move(socket)) {}
  pid_t pid_;
  Fd socket_;
};

/// Sends a handle, receives one; torch_ipc's bytes and descriptors alike.
[[nodiscard]] Result<> send_handle(FdView socket, const memory::Handle& handle);
[[nodiscard]] Result<memory::Handle> receive_handle(FdView socket);

/// In the child: runs the verb that the arguments name. Nothing: this is no child.
[[nodiscard]] std::optional<int> run_child(int argc, char** argv);

}  // namespace wc::contract
