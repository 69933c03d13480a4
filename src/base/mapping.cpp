#include "base/mapping.hpp"

#include <sys/mman.h>

namespace wc {
namespace {

// An address range of the wanted alignment, reserved; the caller maps over it.
Result<std::byte*> reserve_aligned(std::uint64_t bytes, std::uint64_t alignment) {
  const std::uint64_t total = bytes + alignment;
  void* raw = ::mmap(nullptr, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED) return fail_errno("mmap of {} bytes of address space", total);
  auto* start = static_cast<std::byte*>(raw);
  const auto misaligned = reinterpret_cast<std::uintptr_t>(start) % alignment;
  const std::uint64_t head = misaligned == 0 ? 0 : alignment - misaligned;
  if (head > 0) ::munmap(start, head);
  if (alignment > head) ::munmap(start + head + bytes, alignment - head);
  return start + head;
}

constexpr std::uint64_t kPage = 4096;

// At exactly this address, over nothing that is mapped already. Kernels before 4.17 take
// MAP_FIXED_NOREPLACE for a hint, so the answer is compared with the wish.
Result<std::byte*> map_at(FdView fd, const Mapping::Options& options) {
  void* const wanted =
      reinterpret_cast<void*>(options.address);  // NOLINT(performance-no-int-to-ptr)
  void* const got = ::mmap(wanted, options.bytes, options.protection,
                           options.flags | MAP_FIXED_NOREPLACE, fd.get(), 0);
  if (got == wanted) return static_cast<std::byte*>(got);
  const int error = got == MAP_FAILED ? errno : EEXIST;
  if (got != MAP_FAILED) ::munmap(got, options.bytes);
  return fail_os(error == EEXIST ? Code::busy : Code::io, error, "mmap of {} bytes at {:#x}",
                 options.bytes, options.address);
}

}  // namespace

Result<Mapping> Mapping::map(FdView fd, const Options& options) {
  if (options.bytes == 0) return Mapping();
  if (options.bytes > (std::uint64_t{1} << 62)) {
    return fail(Code::invalid_argument, "mmap of {} bytes", options.bytes);
  }
  if (options.address != 0) {
    std::byte* const address = TRY(map_at(fd, options));
    return Mapping(address, options.bytes);
  }
  void* wanted = nullptr;
  int flags = options.flags;
  const std::uint64_t rounded = (options.bytes + kPage - 1) / kPage * kPage;
  if (options.alignment > kPage) {
    wanted = TRY(reserve_aligned(rounded, options.alignment));
    flags |= MAP_FIXED;
  }
  void* address = ::mmap(wanted, options.bytes, options.protection, flags, fd.get(), 0);
  if (address == MAP_FAILED) {
    auto failure = fail_errno("mmap of {} bytes", options.bytes);
    if (wanted != nullptr) ::munmap(wanted, rounded);
    return failure;
  }
  return Mapping(address, options.bytes);
}

void Mapping::reset() {
  if (address_ != nullptr) ::munmap(std::exchange(address_, nullptr), std::exchange(bytes_, 0));
}

}  // namespace wc
