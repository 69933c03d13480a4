// weightcache.hpp: C++17 and later over the C ABI of weightcache.h, header-only: no type of the
// standard library crosses the library's border.
//
// Failures are thrown as weightcache::error. Handles move, are never copied, and are freed by their
// destructors; one that was moved from may only be assigned to or destroyed. What is said to be a
// view lives as long as the handle that it came from. Threads and fork(): as in weightcache.h.
// An exception that leaves a progress function is kept, and thrown on when the call returns.
//
//   weightcache::Connection connection;
//   weightcache::Attachment weights = connection.attach("Llama-3-8B");
//   for (const weightcache::Tensor& tensor : weights) use(tensor.name, tensor.data);
#ifndef WEIGHTCACHE_WEIGHTCACHE_HPP_
#define WEIGHTCACHE_WEIGHTCACHE_HPP_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "weightcache/weightcache.h"

namespace weightcache {

/// What a call failed with: the code (WC_NOT_FOUND, ...), the message as what(), and the name of
/// the errno or CUresult below it, empty where there was none.
// NOLINTNEXTLINE(readability-identifier-naming): spelled as the standard's exceptions are.
class error : public std::runtime_error {
 public:
  error(int code, const std::string& message, std::string origin)
      : std::runtime_error(message), code_(code), origin_(std::move(origin)) {}
  [[nodiscard]] int code() const noexcept { return code_; }
  [[nodiscard]] std::string_view code_name() const noexcept { return wc_error_name(code_); }
  [[nodiscard]] const std::string& origin() const noexcept { return origin_; }

 private:
  int code_;
  std::string origin_;
};

/// A view of consecutive elements; converts to std::span where there is one.
template <typename T>
class View {
 public:
  using element_type = T;
  using value_type = std::remove_cv_t<T>;
  constexpr View() noexcept = default;
  constexpr View(T* data, std::size_t size) noexcept : data_(data), size_(size) {}
  [[nodiscard]] constexpr T* data() const noexcept { return data_; }
  [[nodiscard]] constexpr std::size_t size() const noexcept { return size_; }
  [[nodiscard]] constexpr bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] constexpr T* begin() const noexcept { return data_; }
  [[nodiscard]] constexpr T* end() const noexcept { return data_ + size_; }
  constexpr T& operator[](std::size_t index) const { return data_[index]; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

namespace detail {

inline void check(int code) {
  if (code != WC_OK) throw error(code, wc_last_error_message(), wc_last_error_origin());
}

template <typename T, void (*Free)(T*)>
struct Freer {
  void operator()(T* handle) const noexcept { Free(handle); }
};
template <typename T, void (*Free)(T*)>
using Handle = std::unique_ptr<T, Freer<T, Free>>;

/// A struct of the ABI with its size set and all else zero.
template <typename T>
[[nodiscard]] T sized() noexcept {
  T out{};
  out.struct_size = sizeof(T);
  return out;
}

/// Fills a struct of the ABI by a function of it.
template <typename T, typename Function, typename... Args>
[[nodiscard]] T read(Function function, Args... args) {
  T out = sized<T>();
  check(function(args..., &out));
  return out;
}

[[nodiscard]] inline const char* or_null(const std::string& text) noexcept {
  return text.empty() ? nullptr : text.c_str();
}

[[nodiscard]] inline std::uint64_t ns(std::chrono::nanoseconds time) noexcept {
  return time.count() < 0 ? 0 : static_cast<std::uint64_t>(time.count());
}

}  // namespace detail

/// Ends calls from another thread: they throw an error of WC_CANCELLED.
class Cancellation {
 public:
  Cancellation() {
    wc_cancellation* made = nullptr;
    detail::check(wc_cancellation_new(&made));
    handle_.reset(made);
  }
  void cancel() noexcept { wc_cancel(handle_.get()); }
  [[nodiscard]] bool is_cancelled() const noexcept { return wc_is_cancelled(handle_.get()) != 0; }
  [[nodiscard]] wc_cancellation* get() const noexcept { return handle_.get(); }

 private:
  detail::Handle<wc_cancellation, wc_cancellation_free> handle_;
};

using Progress = wc_progress;
using ProgressFunction = std::function<void(const Progress&)>;

/// What every call that takes long accepts.
struct Patience {
  std::chrono::nanoseconds wait{0};  // 0: as the call's own default says
  ProgressFunction progress;
  Cancellation* cancellation = nullptr;  // not owned
};

namespace detail {

/// Carries a progress function and what it threw across the C ABI.
class Courier {
 public:
  explicit Courier(const Patience& patience) : patience_(patience) {}

  template <typename Options>
  void fill(Options& options) {
    if (patience_.progress) {
      options.progress = &Courier::deliver;
      options.user = this;
    }
    if (patience_.cancellation != nullptr) options.cancellation = patience_.cancellation->get();
  }

  /// After the call: the function's exception goes before the call's own error.
  void check(int code) {
    if (thrown_) std::rethrow_exception(thrown_);
    detail::check(code);
  }

 private:
  static void deliver(const wc_progress* progress, void* user) {
    auto& self = *static_cast<Courier*>(user);
    if (self.thrown_) return;
    try {
      self.patience_.progress(*progress);
    } catch (...) {
      self.thrown_ = std::current_exception();
      if (self.patience_.cancellation != nullptr) self.patience_.cancellation->cancel();
    }
  }

  const Patience& patience_;
  std::exception_ptr thrown_;
};

}  // namespace detail

/// What an entry is asked for by; see wc_selector. A text alone is one.
struct Selector {
  Selector() = default;
  // NOLINTBEGIN(google-explicit-constructor): a name is a selector.
  Selector(std::string selected) : text(std::move(selected)) {}
  Selector(std::string_view selected) : text(selected) {}
  Selector(const char* selected) : text(selected) {}
  // NOLINTEND(google-explicit-constructor)

  std::string text;
  std::string form;
  std::string device;
  std::uint32_t rank = 0;
  std::uint32_t world = 0;

  /// A view of this.
  [[nodiscard]] wc_selector c() const noexcept {
    auto out = detail::sized<wc_selector>();
    out.text = detail::or_null(text);
    out.form = detail::or_null(form);
    out.device = detail::or_null(device);
    out.rank = rank;
    out.world = world;
    return out;
  }
};

/// An entry of the catalog, copied; see wc_entry_info.
struct Entry {
  std::string name, form, fingerprint, device, source;
  std::uint32_t rank = 0, world = 0;
  std::uint64_t generation = 0;
  int state = WC_LOADING;
  int transport = 0;
  std::uint64_t tensors = 0, bytes = 0;
  std::uint32_t segments = 0, leases = 0;
  bool pinned = false;
  std::uint64_t done_bytes = 0, total_bytes = 0;
  std::int64_t since_unix_ns = 0;
  std::uint64_t address = 0;  // fixed virtual address of the first segment; 0: any

  Entry() = default;
  explicit Entry(const wc_entry_info& info)
      : name(info.name),
        form(info.form),
        fingerprint(info.fingerprint),
        device(info.device),
        source(info.source),
        rank(info.rank),
        world(info.world),
        generation(info.generation),
        state(info.state),
        transport(info.transport),
        tensors(info.tensors),
        bytes(info.bytes),
        segments(info.segments),
        leases(info.leases),
        pinned(info.pinned != 0),
        done_bytes(info.done_bytes),
        total_bytes(info.total_bytes),
        since_unix_ns(info.since_unix_ns),
        address(info.address) {}
};

/// A tensor in place. All of it is a view of the attachment.
struct Tensor {
  std::string_view name;
  int dtype = 0;  // WC_BF16, ...
  View<const std::int64_t> shape;
  View<const std::int64_t> strides;  // in elements; empty: contiguous, row-major
  void* data = nullptr;              // host address, or a GPU's
  std::uint64_t bytes = 0;
  std::uint32_t segment = 0;
  std::uint64_t offset = 0;
  int kind = WC_PARAMETER;
  bool persistent = true;
  bool requires_grad = false;

  /// The bytes; of host memory only.
  [[nodiscard]] View<const std::byte> host_bytes() const noexcept {
    return {static_cast<const std::byte*>(data), static_cast<std::size_t>(bytes)};
  }

  Tensor() = default;
  explicit Tensor(const wc_tensor& tensor) noexcept
      : name(tensor.name, tensor.name_bytes),
        dtype(tensor.dtype),
        shape(tensor.shape, tensor.rank),
        strides(tensor.strides, tensor.strides == nullptr ? 0 : tensor.rank),
        data(tensor.data),
        bytes(tensor.bytes),
        segment(tensor.segment),
        offset(tensor.offset),
        kind(tensor.kind),
        persistent((tensor.flags & WC_TENSOR_PERSISTENT) != 0),
        requires_grad((tensor.flags & WC_TENSOR_REQUIRES_GRAD) != 0) {}
};

using Bytes = std::vector<std::byte>;
using Value = std::variant<bool, std::int64_t, double, std::string, Bytes>;

/// Of a tensor (the path is its name) or of a module ("" the root).
struct Attribute {
  std::string path;
  std::string name;
  bool of_tensor = false;
  Value value;
};

namespace detail {

[[nodiscard]] inline Value value_of(const wc_attribute& attribute) {
  const auto* data = static_cast<const char*>(attribute.data);
  switch (attribute.type) {
    case WC_VALUE_BOOL:
      return attribute.integer != 0;
    case WC_VALUE_INT:
      return attribute.integer;
    case WC_VALUE_FLOAT:
      return attribute.real;
    case WC_VALUE_TEXT:
      return std::string(data, attribute.data_bytes);
    default: {
      const auto* bytes = static_cast<const std::byte*>(attribute.data);
      return Bytes(bytes, bytes + attribute.data_bytes);
    }
  }
}

/// A view of `attribute`.
[[nodiscard]] inline wc_attribute view_of(const Attribute& attribute) {
  auto out = sized<wc_attribute>();
  out.path = attribute.path.c_str();
  out.name = attribute.name.c_str();
  out.of_tensor = attribute.of_tensor ? 1 : 0;
  out.type = static_cast<std::int32_t>(attribute.value.index()) + WC_VALUE_BOOL;
  if (const auto* flag = std::get_if<bool>(&attribute.value)) out.integer = *flag ? 1 : 0;
  if (const auto* number = std::get_if<std::int64_t>(&attribute.value)) out.integer = *number;
  if (const auto* real = std::get_if<double>(&attribute.value)) out.real = *real;
  if (const auto* text = std::get_if<std::string>(&attribute.value)) {
    out.data = text->data();
    out.data_bytes = text->size();
  }
  if (const auto* bytes = std::get_if<Bytes>(&attribute.value)) {
    out.data = bytes->data();
    out.data_bytes = bytes->size();
  }
  return out;
}

}  // namespace detail

using Provenance = wc_provenance;
using Segment = wc_segment;

/// A published entry mapped into this process: a range of its tensors. Its memory stays as it is
/// until the destructor, whatever happens to the publisher and the daemon.
class Attachment {
 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Tensor;
    using difference_type = std::ptrdiff_t;
    using pointer = const Tensor*;
    using reference = Tensor;
    Iterator() = default;
    Iterator(const wc_attachment* attachment, std::size_t at) : attachment_(attachment), at_(at) {}
    Tensor operator*() const {
      return Tensor(detail::read<wc_tensor>(wc_attachment_tensor_at, attachment_, at_));
    }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++at_;
      return before;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.at_ == b.at_; }
    friend bool operator!=(const Iterator& a, const Iterator& b) { return a.at_ != b.at_; }

   private:
    const wc_attachment* attachment_ = nullptr;
    std::size_t at_ = 0;
  };

  /// Takes over what wc_attach() gave.
  explicit Attachment(wc_attachment* taken) noexcept : handle_(taken) {}

  [[nodiscard]] std::size_t size() const noexcept {
    return wc_attachment_tensor_count(handle_.get());
  }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  [[nodiscard]] Iterator begin() const noexcept { return {handle_.get(), 0}; }
  [[nodiscard]] Iterator end() const noexcept { return {handle_.get(), size()}; }
  /// In the publisher's order.
  [[nodiscard]] Tensor operator[](std::size_t index) const {
    return *Iterator(handle_.get(), index);
  }
  /// By name. Throws WC_NOT_FOUND, with the nearest names.
  [[nodiscard]] Tensor at(const std::string& name) const {
    return Tensor(detail::read<wc_tensor>(wc_attachment_tensor, handle_.get(), name.c_str()));
  }
  [[nodiscard]] std::optional<Tensor> find(const std::string& name) const {
    auto out = detail::sized<wc_tensor>();
    const int code = wc_attachment_tensor(handle_.get(), name.c_str(), &out);
    if (code == WC_NOT_FOUND) return std::nullopt;
    detail::check(code);
    return Tensor(out);
  }

  [[nodiscard]] Entry entry() const {
    return Entry(detail::read<wc_entry_info>(wc_attachment_entry, handle_.get()));
  }
  [[nodiscard]] std::chrono::nanoseconds attach_time() const noexcept {
    return std::chrono::nanoseconds(wc_attachment_attach_ns(handle_.get()));
  }
  [[nodiscard]] std::string epoch() const { return wc_attachment_epoch(handle_.get()); }
  /// Views.
  [[nodiscard]] Provenance provenance() const {
    return detail::read<wc_provenance>(wc_attachment_provenance, handle_.get());
  }
  [[nodiscard]] std::vector<Segment> segments() const {
    std::vector<Segment> out(wc_attachment_segment_count(handle_.get()));
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = detail::read<wc_segment>(wc_attachment_segment_at, handle_.get(), i);
    return out;
  }
  [[nodiscard]] std::vector<Attribute> attributes() const {
    std::vector<Attribute> out;
    const std::size_t count = wc_attachment_attribute_count(handle_.get());
    out.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto read = detail::read<wc_attribute>(wc_attachment_attribute_at, handle_.get(), i);
      out.push_back({read.path, read.name, read.of_tensor != 0, detail::value_of(read)});
    }
    return out;
  }

  /// Unmaps and ends the lease now.
  void detach() noexcept { handle_.reset(); }
  [[nodiscard]] wc_attachment* get() const noexcept { return handle_.get(); }

 private:
  detail::Handle<wc_attachment, wc_detach> handle_;
};

enum class Access {
  automatic = WC_ACCESS_DEFAULT,
  shared = WC_ACCESS_SHARED,
  private_copy = WC_ACCESS_PRIVATE
};

struct AttachOptions : Patience {
  Access access = Access::automatic;
  std::string expect;  // a fingerprint document, any subset of its fields
};

struct LoadOptions : Patience {
  std::string name, device, transport;
  bool replace = false;
  bool no_wait = false;
  bool compat = false, allow_trailing = false, follow_symlinks = false;
  bool no_digest = false;     // see wc_load_options
  std::uint64_t address = 0;  // where every process maps it; 0: anywhere
  int tier = WC_TIER_AUTO;
  std::uint32_t threads = 0;
};

/// What wc_load() and a publication's publish() did.
struct Loaded {
  Entry entry;
  int outcome = WC_LOADED;
  bool waited = false;
  int tier = WC_TIER_AUTO;
  std::chrono::nanoseconds total{0}, fill{0};
  std::uint64_t read_bytes = 0;

  [[nodiscard]] std::string_view outcome_name() const noexcept { return wc_outcome_name(outcome); }

  /// Takes the result over.
  explicit Loaded(wc_load_result* taken) {
    const detail::Handle<wc_load_result, wc_load_result_free> result(taken);
    entry = Entry(detail::read<wc_entry_info>(wc_load_result_entry, result.get()));
    const auto info = detail::read<wc_load_info>(wc_load_result_info, result.get());
    outcome = info.outcome;
    waited = info.waited != 0;
    tier = info.tier;
    total = std::chrono::nanoseconds(info.total_ns);
    fill = std::chrono::nanoseconds(info.fill_ns);
    read_bytes = info.read_bytes;
  }
};

struct VerifyOptions : Patience {
  std::string source;
  std::size_t limit = 0;
  bool compat = false, allow_trailing = false, follow_symlinks = false;
};

struct Verified {
  struct Mismatch {
    std::string tensor;
    std::uint64_t offset = 0;
  };
  Entry entry;
  std::uint64_t bytes = 0;
  std::vector<Mismatch> mismatches;
};

struct TensorDescription {
  std::string name;
  int dtype = 0;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  // in elements; empty: contiguous, row-major
  std::uint32_t segment = 0;
  std::uint64_t offset = 0;
  int kind = WC_PARAMETER;
  bool persistent = true;
  bool requires_grad = false;
};

struct PublishOptions : Patience {
  std::string name;
  std::string fingerprint;  // the document
  std::string device, transport, publisher, source;
  std::uint32_t rank = 0, world = 1;
  bool replace = false;
  bool no_wait = false;
  std::uint64_t total_bytes = 0;
  std::uint64_t address = 0;  // where every process maps it; 0: anywhere
};

/// The right to fill an entry; made by Connection::publish. Not published, it is abandoned.
class Publication {
 public:
  struct Reserved {
    std::uint32_t segment = 0;
    void* address = nullptr;  // where it is mapped for writing, until publish()
  };

  /// Takes over what wc_publication_begin() gave.
  explicit Publication(wc_publication* taken) noexcept : handle_(taken) {}

  [[nodiscard]] Reserved reserve(std::uint64_t bytes) {
    Reserved out;
    detail::check(wc_publication_reserve(handle_.get(), bytes, &out.segment, &out.address));
    return out;
  }
  void write(const Reserved& to, std::uint64_t offset, View<const std::byte> bytes) {
    detail::check(
        wc_publication_write(handle_.get(), to.segment, offset, bytes.data(), bytes.size()));
  }
  void tensor(const TensorDescription& described) {
    auto out = detail::sized<wc_tensor_description>();
    out.name = described.name.c_str();
    out.shape = described.shape.data();
    out.strides = described.strides.empty() ? nullptr : described.strides.data();
    out.rank = static_cast<std::uint32_t>(described.shape.size());
    if (!described.strides.empty() && described.strides.size() != described.shape.size())
      throw error(WC_INVALID_ARGUMENT,
                  "tensor \"" + described.name + "\": as many strides as dimensions are needed",
                  "");
    out.dtype = described.dtype;
    out.segment = described.segment;
    out.offset = described.offset;
    out.kind = described.kind;
    if (described.persistent) out.flags |= std::uint32_t{WC_TENSOR_PERSISTENT};
    if (described.requires_grad) out.flags |= std::uint32_t{WC_TENSOR_REQUIRES_GRAD};
    detail::check(wc_publication_tensor(handle_.get(), &out));
  }
  void attribute(const Attribute& attribute) {
    const wc_attribute view = detail::view_of(attribute);
    detail::check(wc_publication_attribute(handle_.get(), &view));
  }
  void progress(std::uint64_t done_bytes, std::uint64_t total_bytes) {
    detail::check(wc_publication_progress(handle_.get(), done_bytes, total_bytes));
  }
  /// The one atomic step; the publication is over, whether or not this throws.
  Loaded publish() {
    const auto over = std::move(handle_);
    wc_load_result* result = nullptr;
    detail::check(wc_publication_publish(over.get(), &result));
    return Loaded(result);
  }
  [[nodiscard]] wc_publication* get() const noexcept { return handle_.get(); }

 private:
  detail::Handle<wc_publication, wc_publication_free> handle_;
};

/// Somebody who holds an entry, copied; see wc_lease_info.
struct Lease {
  std::uint64_t lease = 0;
  std::string name, form, device;
  std::uint64_t generation = 0, bytes = 0;
  std::uint32_t rank = 0;
  std::string label, command, container;
  std::int32_t pid = 0;
  std::uint32_t uid = 0;
  std::int64_t since_unix_ns = 0;

  Lease() = default;
  explicit Lease(const wc_lease_info& info)
      : lease(info.lease),
        name(info.name),
        form(info.form),
        device(info.device),
        generation(info.generation),
        bytes(info.bytes),
        rank(info.rank),
        label(info.label),
        command(info.command),
        container(info.container),
        pid(info.pid),
        uid(info.uid),
        since_unix_ns(info.since_unix_ns) {}
};

/// See wc_device_status and wc_status_info; copied.
struct Status {
  struct Device {
    std::string device;
    std::uint64_t bytes = 0, budget_bytes = 0, loading_bytes = 0, releasing_bytes = 0;
    std::uint64_t total_bytes = 0, used_bytes = 0;  // of the device; 0: unknown
  };
  std::string epoch, software;
  std::int32_t pid = 0;
  std::chrono::nanoseconds uptime{0};
  std::uint64_t rss_bytes = 0, entries = 0, leases = 0, connections = 0;
  std::vector<Device> devices;
};

using Evicted = wc_evicted;

struct Stopping {
  std::uint64_t kept_bytes = 0, dropped_bytes = 0;
};

struct DaemonInfo {
  std::string epoch, software, socket;
  std::int32_t pid = 0;
  std::uint32_t protocol = 0;
};

struct ConnectOptions {
  std::string socket;  // empty: $WEIGHTCACHE_SOCKET, else the user's, else the system's
  std::string label;
  std::vector<std::uint32_t> trusted_uids;
  std::chrono::nanoseconds timeout{0};  // 0: 10 s
};

namespace detail {

/// Borrows the options' texts.
[[nodiscard]] inline wc_connect_options connect_options(const ConnectOptions& options) noexcept {
  auto c = sized<wc_connect_options>();
  c.socket = or_null(options.socket);
  c.label = or_null(options.label);
  c.trusted_uids = options.trusted_uids.data();
  c.trusted_uid_count = options.trusted_uids.size();
  c.timeout_ns = ns(options.timeout);
  return c;
}

}  // namespace detail

/// A connection to the daemon. Threads may share it; what was made through it keeps it alive.
class Connection {
 public:
  explicit Connection(const ConnectOptions& options = {}) {
    const wc_connect_options c = detail::connect_options(options);
    wc_connection* made = nullptr;
    detail::check(wc_connect(&c, &made));
    handle_.reset(made);
  }

  [[nodiscard]] DaemonInfo daemon() const {
    const auto info = detail::read<wc_daemon_info>(wc_connection_daemon, handle_.get());
    return {info.epoch, info.software, info.socket, info.pid, info.protocol};
  }

  /// Every entry, or those that the selector matches.
  [[nodiscard]] std::vector<Entry> list() { return entries(wc_list, nullptr); }
  [[nodiscard]] std::vector<Entry> list(const Selector& selector) {
    const wc_selector c = selector.c();
    return entries(wc_list, &c);
  }

  [[nodiscard]] Attachment attach(const Selector& selector, const AttachOptions& options = {}) {
    const wc_selector selected = selector.c();
    detail::Courier courier(options);
    auto c = detail::sized<wc_attach_options>();
    courier.fill(c);
    c.access = static_cast<std::int32_t>(options.access);
    c.expect = detail::or_null(options.expect);
    c.wait_ns = detail::ns(options.wait);
    wc_attachment* made = nullptr;
    const int code = wc_attach(handle_.get(), &selected, &c, &made);
    Attachment attached(made);
    courier.check(code);
    return attached;
  }

  /// Until it is published; without a wait, a look-up.
  Entry wait(const Selector& selector, const Patience& patience = {}) {
    const wc_selector selected = selector.c();
    detail::Courier courier(patience);
    auto c = detail::sized<wc_wait_options>();
    courier.fill(c);
    c.wait_ns = detail::ns(patience.wait);
    wc_entry_list* made = nullptr;
    const int code = wc_wait(handle_.get(), &selected, &c, &made);
    const EntryList list(made);
    courier.check(code);
    return Entry(detail::read<wc_entry_info>(wc_entry_list_at, list.get(), std::size_t{0}));
  }

  /// Makes a checkpoint resident, or finds it so.
  Loaded load(const std::string& source, const LoadOptions& options = {}) {
    detail::Courier courier(options);
    auto c = detail::sized<wc_load_options>();
    courier.fill(c);
    c.name = detail::or_null(options.name);
    c.device = detail::or_null(options.device);
    c.transport = detail::or_null(options.transport);
    c.replace = options.replace ? 1 : 0;
    c.no_wait = options.no_wait ? 1 : 0;
    c.compat = options.compat ? 1 : 0;
    c.allow_trailing = options.allow_trailing ? 1 : 0;
    c.follow_symlinks = options.follow_symlinks ? 1 : 0;
    c.no_digest = options.no_digest ? 1 : 0;
    c.address = options.address;
    c.tier = options.tier;
    c.threads = options.threads;
    c.wait_ns = detail::ns(options.wait);
    wc_load_result* made = nullptr;
    const int code = wc_load(handle_.get(), source.c_str(), &c, &made);
    detail::Handle<wc_load_result, wc_load_result_free> result(made);
    courier.check(code);
    return Loaded(result.release());
  }

  /// Compares resident bytes with the disk.
  [[nodiscard]] Verified verify(const Selector& selector, const VerifyOptions& options = {}) {
    const wc_selector selected = selector.c();
    detail::Courier courier(options);
    auto c = detail::sized<wc_verify_options>();
    courier.fill(c);
    c.source = detail::or_null(options.source);
    c.limit = options.limit;
    c.compat = options.compat ? 1 : 0;
    c.allow_trailing = options.allow_trailing ? 1 : 0;
    c.follow_symlinks = options.follow_symlinks ? 1 : 0;
    wc_verification* made = nullptr;
    const int code = wc_verify(handle_.get(), &selected, &c, &made);
    const detail::Handle<wc_verification, wc_verification_free> result(made);
    courier.check(code);
    return verified_of(result.get());
  }

  /// Asks for the right to fill an entry; nothing where the content is resident already, under
  /// this name from now on.
  [[nodiscard]] std::optional<Publication> publish(const PublishOptions& options) {
    detail::Courier courier(options);
    auto c = detail::sized<wc_publish_options>();
    courier.fill(c);
    c.name = options.name.c_str();
    c.fingerprint = options.fingerprint.c_str();
    c.device = detail::or_null(options.device);
    c.transport = detail::or_null(options.transport);
    c.publisher = detail::or_null(options.publisher);
    c.source = detail::or_null(options.source);
    c.rank = options.rank;
    c.world = options.world;
    c.replace = options.replace ? 1 : 0;
    c.no_wait = options.no_wait ? 1 : 0;
    c.total_bytes = options.total_bytes;
    c.address = options.address;
    c.wait_ns = detail::ns(options.wait);
    wc_publication* made = nullptr;
    const int code = wc_publication_begin(handle_.get(), &c, &made);
    Publication publication(made);
    courier.check(code);
    if (made == nullptr) return std::nullopt;
    return publication;
  }

  [[nodiscard]] std::vector<Lease> leases() { return leases_of(nullptr); }
  [[nodiscard]] std::vector<Lease> leases(const Selector& selector) {
    const wc_selector c = selector.c();
    return leases_of(&c);
  }

  [[nodiscard]] Status status() {
    wc_status* made = nullptr;
    detail::check(wc_status_get(handle_.get(), &made));
    const detail::Handle<wc_status, wc_status_free> status(made);
    const auto info = detail::read<wc_status_info>(wc_status_read, status.get());
    Status out{info.epoch,
               info.software,
               info.pid,
               std::chrono::nanoseconds(info.uptime_ns),
               info.rss_bytes,
               info.entries,
               info.leases,
               info.connections,
               {}};
    for (std::size_t i = 0; i < info.devices; ++i) {
      const auto device = detail::read<wc_device_status>(wc_status_device_at, status.get(), i);
      out.devices.push_back({device.device, device.bytes, device.budget_bytes, device.loading_bytes,
                             device.releasing_bytes, device.total_bytes, device.used_bytes});
    }
    return out;
  }

  Evicted evict(const Selector& selector, bool force = false) {
    const wc_selector c = selector.c();
    return detail::read<wc_evicted>(wc_evict, handle_.get(), &c, force ? 1 : 0);
  }
  void pin(const Selector& selector, bool pinned = true) {
    const wc_selector c = selector.c();
    detail::check(wc_pin(handle_.get(), &c, pinned ? 1 : 0));
  }
  /// Refuses new leases, and waits until none is left.
  void drain(const Selector& selector, const Patience& patience = {}) {
    drain(selector, 0, patience);
  }
  void undo_drain(const Selector& selector) { drain(selector, 1, {}); }
  Stopping stop(bool drop) {
    Stopping out;
    detail::check(wc_stop(handle_.get(), drop ? 1 : 0, &out.kept_bytes, &out.dropped_bytes));
    return out;
  }

  [[nodiscard]] wc_connection* get() const noexcept { return handle_.get(); }

 private:
  using EntryList = detail::Handle<wc_entry_list, wc_entry_list_free>;

  template <typename Function>
  std::vector<Entry> entries(Function function, const wc_selector* selector) {
    wc_entry_list* made = nullptr;
    detail::check(function(handle_.get(), selector, &made));
    const EntryList list(made);
    std::vector<Entry> out;
    const std::size_t count = wc_entry_list_count(list.get());
    out.reserve(count);
    for (std::size_t i = 0; i < count; ++i)
      out.emplace_back(detail::read<wc_entry_info>(wc_entry_list_at, list.get(), i));
    return out;
  }

  std::vector<Lease> leases_of(const wc_selector* selector) {
    wc_lease_list* made = nullptr;
    detail::check(wc_leases(handle_.get(), selector, &made));
    const detail::Handle<wc_lease_list, wc_lease_list_free> list(made);
    std::vector<Lease> out;
    const std::size_t count = wc_lease_list_count(list.get());
    out.reserve(count);
    for (std::size_t i = 0; i < count; ++i)
      out.emplace_back(detail::read<wc_lease_info>(wc_lease_list_at, list.get(), i));
    return out;
  }

  void drain(const Selector& selector, int undo, const Patience& patience) {
    const wc_selector selected = selector.c();
    detail::Courier courier(patience);
    auto c = detail::sized<wc_wait_options>();
    courier.fill(c);
    c.wait_ns = detail::ns(patience.wait);
    courier.check(wc_drain(handle_.get(), &selected, undo, &c));
  }

  static Verified verified_of(const wc_verification* result) {
    Verified out;
    out.entry = Entry(detail::read<wc_entry_info>(wc_verification_entry, result));
    out.bytes = wc_verification_bytes(result);
    const std::size_t count = wc_verification_mismatch_count(result);
    for (std::size_t i = 0; i < count; ++i) {
      const char* tensor = nullptr;
      std::uint64_t offset = 0;
      detail::check(wc_verification_mismatch_at(result, i, &tensor, &offset));
      out.mismatches.push_back({tensor, offset});
    }
    return out;
  }

  detail::Handle<wc_connection, wc_connection_free> handle_;
};

/// What doctor() found out about the machine, as this process sees it.
struct Diagnosis {
  struct Finding {
    std::string area, check, device;  // `check` is stable, for scripts; `device` "": the machine
    int severity = WC_SEVERITY_OK;
    std::string text, advice;  // what is so; what to change
  };
  struct Gpu {
    std::string device, name;  // its UUID
    int ordinal = -1;          // this process's; -1: hidden from it
    std::optional<bool> persistence_mode, mig_mode;
    std::uint64_t total_bytes = 0;
    std::optional<std::uint64_t> used_bytes;  // by everybody
  };
  std::vector<Finding> findings;
  std::vector<Gpu> gpus;
};

/// Looks at this machine; see wc_doctor. That no daemon is there is a finding, no error.
[[nodiscard]] inline Diagnosis doctor(const ConnectOptions& options = {}) {
  const wc_connect_options c = detail::connect_options(options);
  wc_diagnosis* made = nullptr;
  detail::check(wc_doctor(&c, &made));
  const detail::Handle<wc_diagnosis, wc_diagnosis_free> diagnosis(made);
  Diagnosis out;
  for (std::size_t i = 0; i < wc_diagnosis_count(made); ++i) {
    const auto finding = detail::read<wc_finding>(wc_diagnosis_at, diagnosis.get(), i);
    out.findings.push_back({finding.area, finding.check, finding.device, finding.severity,
                            finding.text, finding.advice});
  }
  const auto flag = [](std::int32_t told) {
    return told < 0 ? std::nullopt : std::optional<bool>(told != 0);
  };
  for (std::size_t i = 0; i < wc_diagnosis_gpu_count(made); ++i) {
    const auto gpu = detail::read<wc_gpu_info>(wc_diagnosis_gpu_at, diagnosis.get(), i);
    Diagnosis::Gpu told{
        gpu.device,         gpu.name,        gpu.ordinal, flag(gpu.persistence_mode),
        flag(gpu.mig_mode), gpu.total_bytes, {}};
    if (gpu.used_known != 0) told.used_bytes = gpu.used_bytes;
    out.gpus.push_back(std::move(told));
  }
  return out;
}

/// The digest of a fingerprint document: 32 hexadecimal digits.
[[nodiscard]] inline std::string fingerprint(const std::string& document) {
  char out[33] = {};
  detail::check(wc_fingerprint(document.c_str(), out));
  return out;
}

}  // namespace weightcache

#endif  // WEIGHTCACHE_WEIGHTCACHE_HPP_
