// One mmap'd range, unmapped once. Made only by Mapping::map, so that no invalid one exists but a
// moved-from one, which is empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/fd.hpp"

namespace wc {

/// What x86-64 and most of the kernel's interfaces take for a huge page; mappings that are to use
/// such pages start on a multiple of it.
inline constexpr std::uint64_t kHugePageBytes = std::uint64_t{2} << 20;

class [[nodiscard]] Mapping {
 public:
  struct Options {
    std::uint64_t bytes = 0;      // 0: an empty mapping
    int protection = 0;           // PROT_*
    int flags = 0;                // MAP_*
    std::uint64_t alignment = 0;  // of the address; 0: a page
    std::uint64_t address = 0;    // that it must have; 0: any
  };

  Mapping() = default;
  Mapping(Mapping&& other) noexcept
      : address_(std::exchange(other.address_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    if (this != &other) {
      reset();
      address_ = std::exchange(other.address_, nullptr);
      bytes_ = std::exchange(other.bytes_, 0);
    }
    return *this;
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { reset(); }

  /// Maps `bytes` of the file from its start. Errors: io (with the errno's name), busy (something
  /// is mapped at the wanted address).
  static Result<Mapping> map(FdView fd, const Options& options);

  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(address_); }
  [[nodiscard]] std::uint64_t size() const { return bytes_; }
  [[nodiscard]] std::span<std::byte> bytes() const { return {data(), bytes_}; }
  void reset();

 private:
  Mapping(void* address, std::uint64_t bytes) : address_(address), bytes_(bytes) {}
  void* address_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace wc
