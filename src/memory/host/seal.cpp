#include "memory/host/seal.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/units.hpp"

namespace wc::memory {
namespace {

#ifndef MFD_NOEXEC_SEAL
constexpr unsigned kNoExecSeal = 8;
#else
constexpr unsigned kNoExecSeal = MFD_NOEXEC_SEAL;
#endif
#ifndef F_SEAL_EXEC
constexpr int kExecSeal = 0x20;  // comes with MFD_NOEXEC_SEAL
#else
constexpr int kExecSeal = F_SEAL_EXEC;
#endif

constexpr int kSeals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

Result<int> seals_of(FdView fd) {
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (seals >= 0) return seals;
  if (errno == EINVAL) return fail(Code::corrupt, "not a memfd: fcntl(F_GET_SEALS) refuses it");
  return fail_errno("fcntl(F_GET_SEALS)");
}

// Size and pages; every page must be there, or a reader would pay for it, and find zeros.
Result<std::uint64_t> full_size(FdView fd) {
  struct stat status = {};
  if (::fstat(fd.get(), &status) != 0) return fail_errno("fstat of a memfd");
  const auto size = static_cast<std::uint64_t>(status.st_size);
  const auto allocated = static_cast<std::uint64_t>(status.st_blocks) * 512;
  if (allocated < size) {
    return fail(Code::corrupt, "memfd has holes: {} of its {} bytes are allocated",
                format_count(allocated), format_count(size));
  }
  return size;
}

Result<> expect_size(std::uint64_t size, std::uint64_t expected) {
  if (size == expected) return {};
  return fail(Code::corrupt, "memfd has {} bytes where {} were announced", format_count(size),
              format_count(expected));
}

Result<> expect_sealed(FdView memfd) {
  const int seals = TRY(seals_of(memfd));
  if ((seals & ~kExecSeal) == kSeals) return {};
  return fail(Code::corrupt, "memfd has the seals {:#x}, not {:#x} (write, shrink, grow, seal)",
              seals, kSeals);
}

Result<> write_all(FdView fd, std::span<const std::byte> bytes) {
  std::uint64_t done = 0;
  while (done < bytes.size()) {
    const auto rest = bytes.subspan(done);
    const ssize_t wrote = ::pwrite(fd.get(), rest.data(), rest.size(), static_cast<off_t>(done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      const int error = errno;
      const bool full = error == ENOSPC || error == ENOMEM;
      return fail_os(full ? Code::exhausted : Code::io, error, "write of {} to a memfd",
                     format_bytes(bytes.size()));
    }
    done += static_cast<std::uint64_t>(wrote);
  }
  return {};
}

}  // namespace

Result<Fd> make_memfd(const std::string& name) {
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  int number = ::memfd_create(name.c_str(), kFlags | kNoExecSeal);
  if (number < 0 && errno == EINVAL) number = ::memfd_create(name.c_str(), kFlags);
  if (number < 0) return fail_errno("memfd_create(\"{}\")", name);
  return Fd(number);
}

Result<Fd> seal_and_reopen(FdView memfd) {
  if (::fcntl(memfd.get(), F_ADD_SEALS, kSeals) != 0) {
    const int error = errno;
    const int seals = TRY(seals_of(memfd));
    if (error == EBUSY) {
      return fail_os(Code::busy, error,
                     "fcntl(F_ADD_SEALS): a writable mapping or a registered buffer is left");
    }
    if (error == EPERM && (seals & F_SEAL_SEAL) != 0 && (seals & kSeals) != kSeals) {
      return fail_os(Code::corrupt, error, "fcntl(F_ADD_SEALS): closed with the seals {:#x}",
                     seals);
    }
    if ((seals & kSeals) != kSeals) return fail_os(Code::io, error, "fcntl(F_ADD_SEALS)");
  }
  const std::string path = format("/proc/self/fd/{}", memfd.get());
  const int number = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (number < 0) return fail_errno("open \"{}\" for reading", path);
  return Fd(number);
}

Result<> check_sealed(FdView memfd, std::uint64_t expected_bytes) {
  TRY(expect_sealed(memfd));
  const std::uint64_t size = TRY(full_size(memfd));
  return expect_size(size, expected_bytes);
}

Result<std::uint64_t> sealed_bytes(FdView memfd, std::uint64_t max_bytes) {
  TRY(expect_sealed(memfd));
  const std::uint64_t size = TRY(full_size(memfd));
  if (size > max_bytes) {
    return fail(Code::corrupt, "memfd has {} bytes where at most {} may be", format_count(size),
                format_count(max_bytes));
  }
  return size;
}

Result<> check_writable(FdView memfd, std::uint64_t expected_bytes) {
  const int seals = TRY(seals_of(memfd));
  constexpr int kAgainstWrites = F_SEAL_WRITE | F_SEAL_FUTURE_WRITE;
  if ((seals & kAgainstWrites) != 0) {
    return fail(Code::corrupt, "memfd is sealed against writes (seals {:#x})", seals);
  }
  const std::uint64_t size = TRY(full_size(memfd));
  return expect_size(size, expected_bytes);
}

Result<Fd> sealed_copy(const std::string& name, std::span<const std::byte> bytes) {
  const Fd writable = TRY(make_memfd(name));
  TRY(write_all(writable, bytes));
  return seal_and_reopen(writable);
}

Result<Mapping> map_sealed(FdView memfd, std::uint64_t max_bytes) {
  const std::uint64_t size = TRY(sealed_bytes(memfd, max_bytes));
  return Mapping::map(memfd, {.bytes = size, .protection = PROT_READ, .flags = MAP_SHARED});
}

}  // namespace wc::memory
