// The right to fill an entry, from being granted to the one atomic step that makes it visible:
// begin, reserve segments, write through their views, publish. A publication that ends in any other
// way is abandoned, and its memory given back.
//
// Thread rule: one thread at a time; report_progress() from any. In a forked child nothing can be
// done with it but to drop it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "client/connection.hpp"
#include "client/progress.hpp"
#include "memory/device.hpp"

namespace wc::client {

struct BeginOptions {
  std::string name = {};
  std::string form = "raw";  // or the canonical JSON of what an engine made
  std::uint32_t rank = 0;
  std::uint32_t world = 1;
  std::shared_ptr<memory::Device> device = {};      // required
  std::optional<memory::Transport> transport = {};  // nothing: the device's default
  std::string fingerprint = {};           // 32 hexadecimal digits where the content is known
  std::vector<std::string> aliases = {};  // of the source
  std::string structure = {};             // digest of what is known before reading
  std::uint64_t total_bytes = 0;          // expected, for those who wait
  std::uint64_t address = 0;              // of the first segment, in every process; 0: any
  std::string source = {};                // for people
  bool replace = false;                   // other content under the name: a new generation
  bool wait = true;                       // behind somebody who loads the same
  std::chrono::nanoseconds wait_limit = kNoLimit;
  ProgressFunction on_progress = {};
  const Cancellation* cancellation = nullptr;  // of begin() and of reserve()
};

struct PublishOptions {
  std::string fingerprint = {};
  std::vector<std::string> aliases = {};
  std::chrono::nanoseconds timeout{0};  // 0: a minute more than the connection's
};

class Publication {
 public:
  struct Parts {
    std::shared_ptr<Connection> connection;
    std::shared_ptr<memory::Device> device;
    memory::Transport transport = memory::Transport::host_fd;
    std::uint64_t load = 0;
    std::uint64_t address = 0;  // of the next segment; 0: any
    const Cancellation* cancellation = nullptr;
  };
  explicit Publication(Parts parts);
  Publication(const Publication&) = delete;
  Publication& operator=(const Publication&) = delete;
  /// Abandons what was not published, without waiting.
  ~Publication();

  /// Further segments of these sizes, rounded up to the device's granularity (the views know to
  /// what), every page there before this returns, mapped for writing.
  /// With a fixed address each lies a multiple of kAddressStep behind the one before.
  /// Errors: exhausted (needed, free, what could be evicted), cancelled (an operator evicted it),
  /// busy (the fixed address is taken in this process),
  /// invalid_argument (no size, a size of 0, more than 240 in all), and those of Channel::exchange.
  [[nodiscard]] Result<> reserve(std::span<const std::uint64_t> sizes);

  /// Of all segments reserved so far, in order. Valid until publish(), abandon() or destruction.
  [[nodiscard]] std::span<memory::View* const> views() const { return view_pointers_; }

  /// Tells those who wait; ten times a second at most, whatever the caller does, and never waits.
  void report_progress(std::uint64_t done_bytes, std::uint64_t total_bytes);

  /// Makes every view read-only for good, hands the manifest over, and makes the entry visible. The
  /// publication is over, also after an error: nothing is visible then. Either way what was written
  /// can be read at its address until destruction.
  /// Errors: already_exists (other content has the name), corrupt (the manifest does not fit the
  /// segments), cancelled, device, exhausted, and those of Channel::exchange.
  [[nodiscard]] Result<wire::fb::PublishedT> publish(std::span<const std::byte> manifest,
                                                     const PublishOptions& options);

  /// Gives the right and the memory back; the reason is for the daemon's log. Errors: as above.
  [[nodiscard]] Result<> abandon(const Error& reason);

  /// The physical memory of a device that is no host, which this process made. With torch_ipc it
  /// must outlive every reader: take it after publish(), and keep it. Otherwise it may go.
  [[nodiscard]] std::vector<std::unique_ptr<memory::Segment>> take_segments() {
    return std::move(segments_);
  }

  [[nodiscard]] memory::Device& device() const { return *parts_.device; }
  /// Whether the addresses of the views are those that every process will see.
  [[nodiscard]] bool fixed_addresses() const { return parts_.address != 0; }
  [[nodiscard]] memory::Transport transport() const { return parts_.transport; }

 private:
  [[nodiscard]] Result<> reserve_from_daemon(std::span<const std::uint64_t> sizes);
  [[nodiscard]] Result<> supply(std::span<const std::uint64_t> sizes);
  [[nodiscard]] Result<> supply_one(std::uint64_t bytes);
  [[nodiscard]] std::string what_could_go() const;
  [[nodiscard]] Result<Answer> ask_for_memory(std::span<const std::uint64_t> sizes,
                                              std::uint64_t manifest_bytes);
  [[nodiscard]] Result<> hand_over_manifest(std::span<const std::byte> manifest);
  [[nodiscard]] Result<wire::fb::PublishedT> publish_steps(std::span<const std::byte> manifest,
                                                           const PublishOptions& options);
  void add_view(std::unique_ptr<memory::View> view);
  [[nodiscard]] Result<> end_writing();
  void give_up(const Error& reason);
  [[nodiscard]] wire::fb::AbandonT abandon_for(const Error& reason) const;
  void unmap();

  [[nodiscard]] Result<std::uint64_t> next_address(std::uint64_t bytes);
  Parts parts_;
  bool over_ = false;
  std::vector<std::unique_ptr<memory::Segment>> segments_;  // of a device that is no host
  std::vector<std::unique_ptr<memory::View>> views_;
  std::vector<memory::View*> view_pointers_;
  std::atomic<std::int64_t> reported_ns_{0};
};

/// Granted, or what is resident already (under this name from now on).
using Begun = std::variant<std::unique_ptr<Publication>, wire::fb::EntryInfoT>;

/// Errors: already_exists, busy (somebody loads it and `wait` is not set), timed_out, cancelled,
/// unsupported (the transport), invalid_argument, exhausted, and those of Channel::exchange.
[[nodiscard]] Result<Begun> begin(const std::shared_ptr<Connection>& connection,
                                  const BeginOptions& options);

}  // namespace wc::client
