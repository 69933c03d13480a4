// A mapping of a memfd, and the writer over several of them.
#pragma once

#include <memory>
#include <span>

#include "base/fd.hpp"
#include "base/mapping.hpp"
#include "memory/device.hpp"

namespace wc::memory {

class HostView final : public View {
 public:
  /// Maps a checked memfd. Errors: busy (the address is taken), io.
  static Result<std::unique_ptr<HostView>> map(Fd memfd, const ImportOptions& options);

  HostView(Fd memfd, Mapping mapping, Access access)
      : memfd_(std::move(memfd)), mapping_(std::move(mapping)), access_(access) {}

  [[nodiscard]] std::uint64_t address() const override {
    return reinterpret_cast<std::uintptr_t>(mapping_.data());
  }
  [[nodiscard]] std::uint64_t bytes() const override { return mapping_.size(); }
  [[nodiscard]] Access access() const override { return access_; }
  /// The memfd can be sealed afterwards, with this view in place.
  [[nodiscard]] Result<> make_read_only() override;

  [[nodiscard]] std::span<std::byte> span() const { return mapping_.bytes(); }

 private:
  Fd memfd_;  // only while the view is for writing: to be mapped anew, read-only
  Mapping mapping_;
  Access access_;
};

/// Errors: invalid_argument (a view that is not of host memory).
[[nodiscard]] Result<std::unique_ptr<Writer>> make_host_writer(std::span<View* const> views);

}  // namespace wc::memory
