#include "memory/host/host_view.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include "base/units.hpp"

namespace wc::memory {
namespace {

constexpr std::uint64_t kHugePage = std::uint64_t{2} << 20;

Mapping::Options mapping_options(const ImportOptions& options) {
  Mapping::Options wanted = {.bytes = options.bytes,
                             .protection = PROT_READ,
                             .flags = MAP_SHARED,
                             .alignment = options.bytes >= kHugePage ? kHugePage : 0,
                             .address = options.address};
  if (options.access != Access::shared_read) wanted.protection |= PROT_WRITE;
  // Without MAP_NORESERVE 40 GiB on a machine of 23 are ENOMEM (Linux 6.18).
  if (options.access == Access::private_copy) wanted.flags = MAP_PRIVATE | MAP_NORESERVE;
  return wanted;
}

}  // namespace

Result<std::unique_ptr<HostView>> HostView::map(Fd memfd, const ImportOptions& options) {
  Mapping mapping = TRY(Mapping::map(memfd, mapping_options(options)));
  if (options.access != Access::write) memfd.reset();
  return std::make_unique<HostView>(std::move(memfd), std::move(mapping), options.access);
}

Result<> HostView::make_read_only() {
  if (access_ == Access::shared_read) return {};
  if (access_ != Access::write) {
    return fail(Code::invalid_argument, "a private copy can't be made read-only");
  }
  // mprotect would not do: a shared mapping made from a descriptor for writing could be made
  // writable again, and stands in the way of the seals.
  const std::string path = format("/proc/self/fd/{}", memfd_.get());
  const Fd readable(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!readable) return fail_errno("open \"{}\" for reading", path);
  void* const same = ::mmap(mapping_.data(), mapping_.size(), PROT_READ, MAP_SHARED | MAP_FIXED,
                            readable.get(), 0);
  if (same == MAP_FAILED) {
    return fail_errno("mmap of {} at {:#x}, read-only", format_bytes(bytes()), address());
  }
  access_ = Access::shared_read;
  memfd_.reset();
  return {};
}

}  // namespace wc::memory
