// A benchmark's second processes: this program, started again with a role, told to start by a byte
// on its standard input, and answering with numbers on its standard output.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

namespace bench {

class Child {
 public:
  /// Runs /proc/self/exe with these arguments; descriptors without close-on-exec go along.
  explicit Child(const std::vector<std::string>& arguments);
  Child(Child&& other) noexcept;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  Child& operator=(Child&&) = delete;
  ~Child();

  /// The next line that it wrote; ends the program where there is none.
  [[nodiscard]] std::string line();
  /// Lets it go on.
  void go() const;

 private:
  pid_t pid_ = -1;
  int to_ = -1;
  int from_ = -1;
  std::string unread_;
};

/// In a child: says that it is ready, and waits for the parent's go().
void ready_and_wait();

/// "12.3 ms (11.9 to 15.0)" of nanoseconds.
[[nodiscard]] std::string spread(std::vector<std::uint64_t> ns);
[[nodiscard]] std::uint64_t median(std::vector<std::uint64_t> ns);

}  // namespace bench
