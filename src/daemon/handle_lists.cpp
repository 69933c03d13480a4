// What there is, page by page: as many rows as a packet has room for.
#include <unistd.h>

#include "daemon/convert.hpp"
#include "daemon/handlers.hpp"
#include "daemon/process.hpp"

namespace wc::daemon {
namespace {

// `make(rows)` gives the answer with at most so many rows; a page that is too large for a packet is
// made again with half as many. One row always fits.
template <typename Make>
void send_page(Call& call, Make make) {
  for (std::size_t rows = kRowsPerPage;; rows /= 2) {
    auto bytes = wire::encode(call.request, make(rows));
    if (bytes || rows <= 1 || bytes.error().code != Code::exhausted) {
      call.session.send_encoded(call.request, std::move(bytes));
      return;
    }
  }
}

}  // namespace

Result<> handle(Call& call, const fb::ListT& message) {
  const auto selector = to_catalog(message.selector);
  send_page(call, [&](std::size_t rows) {
    const auto page = call.core.catalog().list(selector, message.after, rows);
    fb::EntriesT answer;
    answer.next = page.next;
    for (const auto& entry : page.entries) answer.entries.push_back(to_wire_ptr(entry));
    return answer;
  });
  return {};
}

Result<> handle(Call& call, const fb::LeasesT& message) {
  const auto selector = to_catalog(message.selector);
  send_page(call, [&](std::size_t rows) {
    const auto page = call.core.catalog().leases(selector, message.after, rows);
    fb::LeaseListT answer;
    answer.next = page.next;
    for (const auto& lease : page.leases) {
      answer.leases.push_back(
          std::make_unique<fb::LeaseInfoT>(to_wire(lease, call.core.session(lease.session))));
    }
    return answer;
  });
  return {};
}

Result<> handle(Call& call, const fb::StatusT&) {
  const Core& core = call.core;
  fb::StatusReportT answer;
  answer.epoch = core.options().epoch;
  answer.pid = ::getpid();
  answer.software = core.options().software;
  answer.uptime_ns = static_cast<std::uint64_t>(core.uptime().count());
  answer.rss_bytes = own_memory_bytes();
  answer.entries = static_cast<std::uint32_t>(call.core.catalog().entry_count());
  answer.leases = static_cast<std::uint32_t>(call.core.catalog().lease_count());
  answer.connections = static_cast<std::uint32_t>(core.connections());
  for (const auto& device : call.core.catalog().devices()) {
    answer.devices.push_back(std::make_unique<fb::DeviceStatusT>(to_wire(device)));
  }
  call.session.send(call.request, answer);
  return {};
}

}  // namespace wc::daemon
