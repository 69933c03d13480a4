#include "wire/parts.hpp"

#include <bit>
#include <optional>
#include <string_view>

#include "base/units.hpp"
#include "wire/limits.hpp"

namespace wc::wire {
namespace {

template <typename T>
using Tables = flatbuffers::Vector<flatbuffers::Offset<T>>;

// Collects the first broken rule and the bytes of all parts, each counted as often as it is used.
class Walk {
 public:
  explicit Walk(Code code) : code_(code) {}

  void message(const fb::Message& message);
  [[nodiscard]] Result<> verdict(std::size_t packet_bytes);

 private:
  void visit(const fb::EntryInfo& entry);
  void visit(const fb::Selector& selector);
  void visit(const fb::SegmentInfo& segment);
  void visit(const fb::IpcHandle& handle);
  void visit(const fb::Hello& hello);
  void visit(const fb::Welcome& welcome);
  void visit(const fb::Attached& attached);
  void visit(const fb::Begin& begin);
  void visit(const fb::LeaseInfo& lease);
  void visit(const fb::DeviceStatus& device) { text("device", device.device()); }
  void visit(const fb::StatusReport& report);
  void visit(const fb::Publish& publish);
  void visit(const fb::Published& published);
  void visit(const fb::Failure& failure);

  template <typename T>
  void table(const T* part) {
    bytes_ += 8;  // its own offset and that of its vtable
    if (part != nullptr) visit(*part);
  }
  template <typename T>
  void tables(std::string_view field, const Tables<T>* parts, std::size_t limit) {
    if (parts == nullptr) return;
    count(field, parts->size(), limit, "elements");
    if (broken_) return;
    for (const T* part : *parts) table(part);
  }
  template <typename T>
  void selector_of(const fb::Message& message) {
    table(message.body_as<T>()->selector());
  }
  template <typename T>
  void entry_of(const fb::Message& message) {
    table(message.body_as<T>()->entry());
  }

  void text(std::string_view field, const flatbuffers::String* part,
            std::size_t limit = kMaxTextBytes) {
    if (part == nullptr) return;
    count(field, part->size(), limit, "bytes");
    bytes_ += part->size() + sizeof(flatbuffers::uoffset_t) + 1;
  }
  template <typename T>
  void scalars(std::string_view field, const flatbuffers::Vector<T>* part, std::size_t limit) {
    if (part == nullptr) return;
    count(field, part->size(), limit, sizeof(T) == 1 ? "bytes" : "elements");
    // The verifier aligns a vector's length, not its elements.
    if (std::bit_cast<std::uintptr_t>(part->Data()) % alignof(T) != 0 && !broken_)
      broken_ = fail(code_, "{} is not aligned to {} bytes", field, alignof(T));
    bytes_ += part->size() * sizeof(T) + sizeof(flatbuffers::uoffset_t);
  }
  void aliases(const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* list) {
    if (list == nullptr) return;
    count("aliases", list->size(), kMaxAliases, "elements");
    if (broken_) return;
    for (const auto* alias : *list) text("aliases", alias);
  }
  void count(std::string_view field, std::size_t have, std::size_t limit, std::string_view unit) {
    if (have <= limit || broken_) return;
    broken_ = fail(code_, "{} has {} {} ({} at most)", field, format_count(have), unit,
                   format_count(limit));
  }
  void refuse(std::string_view field, unsigned value) {
    if (!broken_) broken_ = fail(code_, "{} is {}, which means nothing", field, value);
  }

  Code code_;
  std::size_t bytes_ = 0;
  std::optional<Failure> broken_;
};

void Walk::visit(const fb::EntryInfo& entry) {
  text("name", entry.name());
  text("form", entry.form(), kMaxFormBytes);
  text("fingerprint", entry.fingerprint());
  text("device", entry.device());
  text("source", entry.source());
  if (entry.state() > fb::State::MAX) refuse("state", static_cast<unsigned>(entry.state()));
}

void Walk::visit(const fb::Selector& selector) {
  text("name", selector.name());
  text("fingerprint", selector.fingerprint());
  aliases(selector.aliases());
  text("form", selector.form(), kMaxFormBytes);
  text("device", selector.device());
}

void Walk::visit(const fb::SegmentInfo& segment) {
  const bool known = segment.handle_type() <= fb::Handle::MAX;
  const bool there = segment.handle() != nullptr || segment.handle_type() == fb::Handle::NONE;
  if (!known || !there) return refuse("handle", static_cast<unsigned>(segment.handle_type()));
  if (segment.handle_type() == fb::Handle::IpcHandle) table(segment.handle_as_IpcHandle());
}

void Walk::visit(const fb::IpcHandle& handle) {
  scalars("handle", handle.handle(), kMaxIpcBytes);
  scalars("event", handle.event(), kMaxIpcBytes);
  text("counter", handle.counter(), kMaxCounterBytes);
}

void Walk::visit(const fb::Hello& hello) {
  text("label", hello.label());
  text("command", hello.command());
  text("container", hello.container());
}

void Walk::visit(const fb::Welcome& welcome) {
  text("epoch", welcome.epoch());
  text("software", welcome.software());
}

void Walk::visit(const fb::Attached& attached) {
  table(attached.entry());
  tables("segments", attached.segments(), kMaxSegments);
  scalars("ticket", attached.ticket(), kMaxTicketBytes);
}

void Walk::visit(const fb::Begin& begin) {
  text("name", begin.name());
  text("form", begin.form(), kMaxFormBytes);
  text("device", begin.device());
  text("fingerprint", begin.fingerprint());
  aliases(begin.aliases());
  text("structure", begin.structure());
  text("source", begin.source());
}

void Walk::visit(const fb::LeaseInfo& lease) {
  text("entry_name", lease.entry_name());
  text("form", lease.form(), kMaxFormBytes);
  text("device", lease.device());
  text("label", lease.label());
  text("command", lease.command());
  text("container", lease.container());
}

void Walk::visit(const fb::StatusReport& report) {
  text("epoch", report.epoch());
  text("software", report.software());
  tables("devices", report.devices(), kMaxPacketBytes);
}

void Walk::visit(const fb::Publish& publish) {
  text("fingerprint", publish.fingerprint());
  aliases(publish.aliases());
}

void Walk::visit(const fb::Published& published) {
  table(published.entry());
  if (published.outcome() > fb::Outcome::MAX)
    refuse("outcome", static_cast<unsigned>(published.outcome()));
}

void Walk::visit(const fb::Failure& failure) {
  text("message", failure.message());
  text("origin", failure.origin());
}

void Walk::message(const fb::Message& message) {
  using fb::Body;
  switch (message.body_type()) {
    case Body::Hello:
      return table(message.body_as_Hello());
    case Body::Welcome:
      return table(message.body_as_Welcome());
    case Body::Attach:
      return selector_of<fb::Attach>(message);
    case Body::Attached:
      return table(message.body_as_Attached());
    case Body::Detach:
      return text("message", message.body_as_Detach()->message());
    case Body::Lookup:
      return selector_of<fb::Lookup>(message);
    case Body::Wait:
      return selector_of<fb::Wait>(message);
    case Body::Entry:
      return entry_of<fb::Entry>(message);
    case Body::Begin:
      return table(message.body_as_Begin());
    case Body::Resident:
      return entry_of<fb::Resident>(message);
    case Body::Reserve:
      return scalars("segments", message.body_as_Reserve()->segments(), kMaxSegments);
    case Body::Supply:
      return table(message.body_as_Supply()->segment());
    case Body::Publish:
      return table(message.body_as_Publish());
    case Body::Published:
      return table(message.body_as_Published());
    case Body::Abandon:
      return text("message", message.body_as_Abandon()->message());
    case Body::Progress:
      return entry_of<fb::Progress>(message);
    case Body::List:
      return selector_of<fb::List>(message);
    case Body::Entries:
      return tables("entries", message.body_as_Entries()->entries(), kMaxPacketBytes);
    case Body::Leases:
      return selector_of<fb::Leases>(message);
    case Body::LeaseList:
      return tables("leases", message.body_as_LeaseList()->leases(), kMaxPacketBytes);
    case Body::StatusReport:
      return table(message.body_as_StatusReport());
    case Body::Evict:
      return selector_of<fb::Evict>(message);
    case Body::Pin:
      return selector_of<fb::Pin>(message);
    case Body::Drain:
      return selector_of<fb::Drain>(message);
    case Body::Failure:
      return table(message.body_as_Failure());
    case Body::Resumed:
      return text("epoch", message.body_as_Resumed()->epoch());
    default:
      return;  // of fixed size, or of a later version and never unpacked
  }
}

Result<> Walk::verdict(std::size_t packet_bytes) {
  if (broken_) return *std::move(broken_);
  if (bytes_ <= packet_bytes) return {};
  return fail(code_, "its parts have {} bytes in a packet of {}: one is used more than once",
              format_count(bytes_), format_count(packet_bytes));
}

}  // namespace

Result<> check_parts(Code code, const fb::Message& message, std::size_t packet_bytes) {
  Walk walk(code);
  walk.message(message);
  return walk.verdict(packet_bytes);
}

}  // namespace wc::wire
