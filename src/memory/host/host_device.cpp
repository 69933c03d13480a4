#include "memory/host/host_device.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <utility>

#include "base/units.hpp"
#include "memory/host/host_view.hpp"
#include "memory/host/reserve.hpp"
#include "memory/host/seal.hpp"
#include "memory/host/system_text.hpp"

namespace wc::memory {
namespace {

constexpr std::uint64_t kGranularity = 4096;

class HostSegment final : public Segment {
 public:
  HostSegment(Fd memfd, std::uint64_t bytes) : memfd_(std::move(memfd)), bytes_(bytes) {}

  std::uint64_t bytes() const override { return bytes_; }

  Result<Handle> export_handle() override {
    if (!sealed_) {
      memfd_ = TRY(seal_and_reopen(memfd_));
      sealed_ = true;
    }
    Fd copy = TRY(duplicate(memfd_));
    return Handle(std::move(copy));
  }

  Result<Fd> for_writing() const {
    if (sealed_)
      return fail(Code::busy, "the segment was exported and is sealed: nobody can write");
    return duplicate(memfd_);
  }

 private:
  Fd memfd_;
  std::uint64_t bytes_;
  bool sealed_ = false;
};

class HostDevice final : public Device {
 public:
  HostDevice(DeviceInfo info, HostOptions options, bool strict)
      : info_(std::move(info)), options_(std::move(options)), strict_(strict) {}

  const DeviceInfo& info() const override { return info_; }

  Result<std::uint64_t> free_bytes() override {
    const Headroom room = TRY(memory_headroom(options_.facts));
    return room.bytes;
  }

  Result<std::unique_ptr<Segment>> create(std::uint64_t bytes) override {
    if (bytes > std::numeric_limits<std::uint64_t>::max() - kGranularity) {
      return fail(Code::exhausted, "{} of host memory needed", format_bytes(bytes));
    }
    const std::uint64_t rounded = (bytes + kGranularity - 1) / kGranularity * kGranularity;
    ReserveOptions options;
    options.huge_pages = options_.huge_pages;
    options.facts = options_.facts;
    Fd memfd = TRY(reserve_host(rounded, options));
    return std::make_unique<HostSegment>(std::move(memfd), rounded);
  }

  Result<std::unique_ptr<View>> map_at(Segment& segment, std::uint64_t address) override {
    auto* const own = dynamic_cast<HostSegment*>(&segment);
    if (own == nullptr) return fail(Code::invalid_argument, "a segment that is not of host memory");
    Fd memfd = TRY(own->for_writing());
    return HostView::map(std::move(memfd),
                         {.bytes = own->bytes(), .access = Access::write, .address = address});
  }

  Result<std::unique_ptr<View>> import(Handle handle, const ImportOptions& options) override {
    auto* const memfd = std::get_if<Fd>(&handle);
    if (memfd == nullptr) {
      return fail(Code::invalid_argument,
                  "host memory crosses as a descriptor (host_fd), not as bytes (torch_ipc)");
    }
    if (options.bytes == 0) return fail(Code::invalid_argument, "a segment of 0 bytes");
    ImportOptions wanted = options;
    if (options.access == Access::write) {
      TRY(check_writable(*memfd, options.bytes));
    } else {
      TRY(check_sealed(*memfd, options.bytes));
      if (strict_) wanted.access = Access::shared_read;
    }
    return HostView::map(std::move(*memfd), wanted);
  }

  Result<std::unique_ptr<Writer>> writer(std::span<View* const> views,
                                         std::uint64_t /*block_bytes*/) override {
    return make_host_writer(views);
  }

 private:
  DeviceInfo info_;
  HostOptions options_;
  bool strict_;
};

// "model name : AMD EPYC 9654" where the kernel gives one (x86); "cpu" elsewhere.
std::string processor_name(const SystemFacts& facts) {
  const auto text = read_text(facts.root + "/proc/cpuinfo");
  if (!text) return "cpu";
  for (const std::string_view line : split(*text, '\n')) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string_view::npos) {
      return std::string(line.substr(colon + 2));
    }
  }
  return "cpu";
}

bool strict_wanted() {
  const char* const value = std::getenv("WEIGHTCACHE_STRICT");
  return value != nullptr && std::string_view(value) == "1";
}

}  // namespace

Result<std::unique_ptr<Device>> open_host_device(const HostOptions& options) {
  DeviceInfo info;
  info.uuid = "cpu";
  info.name = processor_name(options.facts);
  info.total_bytes = TRY(total_memory(options.facts));
  info.granularity_bytes = kGranularity;
  info.transports = {Transport::host_fd};
  return std::make_unique<HostDevice>(std::move(info), options, strict_wanted());
}

}  // namespace wc::memory
