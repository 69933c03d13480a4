// Direct reads through io_uring: one block of a file in several pieces that are in flight together,
// so that a few threads keep a fast disk busy. One thread's. Where containers refuse io_uring
// (EPERM, ENOSYS) none can be made, and threads serve.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/fd.hpp"
#include "base/result.hpp"

struct io_uring;

namespace wc::load {

class UringReader {
 public:
  /// Errors: unsupported, io.
  static Result<UringReader> create();
  UringReader(UringReader&&) noexcept;
  UringReader& operator=(UringReader&&) = delete;
  ~UringReader();

  /// Reads until all is there, or the file ends: the bytes that came, without a hole. Errors: io.
  /// Nothing is in flight afterwards, in either case.
  [[nodiscard]] Result<std::uint64_t> read(FdView fd, std::uint64_t offset,
                                           std::span<std::byte> to);

 private:
  struct Ring;
  explicit UringReader(std::unique_ptr<Ring> ring);
  std::unique_ptr<Ring> ring_;
};

}  // namespace wc::load
