// A published entry, mapped into this process. Its memory stays as it is until the attachment goes,
// whatever happens to the publisher, the daemon or the connection; it keeps the connection, so that
// its lease ends with it and not before.
//
// Thread rule: immutable after attach(): any number of threads may read it; detach() and
// destruction are the owner's. In a forked child the mappings of host memory stay usable; the lease
// is the parent's.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapping.hpp"
#include "base/result.hpp"
#include "client/connection.hpp"
#include "client/progress.hpp"
#include "manifest/manifest.hpp"
#include "memory/device.hpp"

namespace wc::client {

/// Gives the device that an entry lies on: "cpu", or a UUID. Errors: the caller's; unsupported
/// where this process can't see it.
using DeviceFinder =
    std::function<Result<std::shared_ptr<memory::Device>>(std::string_view device)>;

/// Always the same one, for whatever is asked.
[[nodiscard]] DeviceFinder always(std::shared_ptr<memory::Device> device);

struct AttachOptions {
  DeviceFinder device = {};                             // required
  memory::Access access = memory::Access::shared_read;  // shared_read or private_copy
  std::string expect = {};                              // see expectation.hpp; empty: anything
  std::chrono::nanoseconds wait{0};   // 0: what is not published is an error at once; kNoLimit
  ProgressFunction on_progress = {};  // while it waits
  const Cancellation* cancellation = nullptr;
};

class Attachment {
 public:
  struct Parts;
  explicit Attachment(Parts parts);
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;
  /// Unmaps everything, then tells the daemon, as far as that is possible without waiting.
  ~Attachment();

  [[nodiscard]] const wire::fb::EntryInfoT& entry() const;
  [[nodiscard]] const manifest::Manifest& manifest() const;
  /// Segment `index`, below segment_count(): host or device address, and bytes.
  [[nodiscard]] std::uint64_t segment_address(std::uint32_t index) const;
  [[nodiscard]] std::uint64_t segment_bytes(std::uint32_t index) const;
  [[nodiscard]] std::uint32_t segment_count() const;
  /// Of all segments, in order, for reading through the device; valid as long as the addresses.
  [[nodiscard]] std::vector<memory::View*> views() const;
  /// Of a tensor of manifest(), in this process.
  [[nodiscard]] std::uint64_t address_of(const manifest::TensorView& tensor) const;

  [[nodiscard]] std::uint64_t lease() const;
  /// Opaque; offered to a later daemon together with the descriptors.
  [[nodiscard]] std::span<const std::uint8_t> ticket() const;
  [[nodiscard]] const DaemonInfo& daemon() const;
  [[nodiscard]] memory::Device& device() const;
  [[nodiscard]] memory::Access access() const;

  /// Unmaps everything, ends the lease, and waits until the daemon has said so. Every address taken
  /// from it becomes invalid, also after an error. Errors: as Channel::exchange; a connection that
  /// has ended has ended the lease too, and is no error.
  [[nodiscard]] Result<> detach();

 private:
  void unmap();
  std::unique_ptr<Parts> parts_;
};

/// Errors: not_found, busy (loading, draining), mismatch (each field that is not as expected),
/// invalid_argument (more than one entry matches: they are listed), denied, timed_out (of the
/// wait), cancelled, corrupt (what the daemon handed over is not what it says), unsupported,
/// device, io, and those of Channel::exchange. After an error nothing is mapped and no lease is
/// left.
[[nodiscard]] Result<std::unique_ptr<Attachment>> attach(
    const std::shared_ptr<Connection>& connection, const wire::fb::SelectorT& selector,
    const AttachOptions& options);

}  // namespace wc::client
