// Owner and view of one file descriptor. Fd closes it once; FdView never does.
// An Fd holds a descriptor or is empty (moved from, released); copying is duplicate().
#pragma once

#include <utility>

#include "base/result.hpp"

namespace wc {

class FdView {
 public:
  FdView() = default;
  explicit FdView(int number) : number_(number) {}
  [[nodiscard]] int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_ = -1;
};

class [[nodiscard]] Fd {
 public:
  Fd() = default;
  /// Takes ownership of an open descriptor.
  explicit Fd(int number) : number_(number) {}
  Fd(Fd&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      number_ = std::exchange(other.number_, -1);
    }
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }

  [[nodiscard]] int get() const { return number_; }
  [[nodiscard]] FdView view() const { return FdView(number_); }
  // NOLINTNEXTLINE(google-explicit-constructor): a view of it is what nearly every callee wants.
  operator FdView() const { return FdView(number_); }
  explicit operator bool() const { return number_ >= 0; }
  /// Gives the descriptor up without closing it.
  [[nodiscard]] int release() { return std::exchange(number_, -1); }
  void reset();

 private:
  int number_ = -1;
};

/// A second descriptor of the same open file, close-on-exec.
[[nodiscard]] Result<Fd> duplicate(FdView fd);

}  // namespace wc
