// Between the catalog's words and the wire's: plain copies, no decision. What needs one (a device's
// name, a transport) is checked here and nowhere else.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "base/result.hpp"
#include "catalog/catalog.hpp"
#include "daemon/session.hpp"
#include "daemon/store.hpp"
#include "memory/types.hpp"
#include "messages_generated.h"

namespace wc::daemon {

namespace fb = wire::fb;

[[nodiscard]] fb::EntryInfoT to_wire(const catalog::EntryInfo& entry);
[[nodiscard]] std::unique_ptr<fb::EntryInfoT> to_wire_ptr(const catalog::EntryInfo& entry);
/// `session` may be null: it is about to end.
[[nodiscard]] fb::LeaseInfoT to_wire(const catalog::LeaseInfo& lease, const Session* session);
[[nodiscard]] fb::SegmentInfoT to_wire(const StoredSegment& segment);
[[nodiscard]] fb::DeviceStatusT to_wire(const catalog::DeviceStatus& device);

/// An absent selector selects nothing in particular.
[[nodiscard]] catalog::Selector to_catalog(const std::unique_ptr<fb::SelectorT>& selector);

/// 0: no deadline but the catalog's own.
[[nodiscard]] std::optional<catalog::Time> deadline_after(std::uint64_t timeout_ms,
                                                          const catalog::Now& now);

/// Errors: invalid_argument (neither "cpu" nor a UUID), unsupported (the device can't do the
/// transport: those it can are named). 0 is the device's default.
[[nodiscard]] Result<memory::Transport> transport_for(std::string_view device, std::uint8_t number);

/// Of a Supply, with the descriptors that came. Errors: invalid_argument.
[[nodiscard]] Result<memory::Handle> to_handle(const fb::SegmentInfoT& segment,
                                               memory::Transport transport,
                                               std::vector<Fd>& descriptors);

}  // namespace wc::daemon
