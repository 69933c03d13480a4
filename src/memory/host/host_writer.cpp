#include <cstring>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "memory/host/host_view.hpp"
#include "memory/host/stream_copy.hpp"

namespace wc::memory {
namespace {

class HostWriter final : public Writer {
 public:
  explicit HostWriter(std::vector<HostView*> views) : views_(std::move(views)) {}

  Result<std::span<std::byte>> stage(std::uint64_t /*bytes*/) override {
    return std::span<std::byte>();
  }

  std::span<std::byte> place(std::uint32_t segment, std::uint64_t offset,
                             std::uint64_t bytes) override {
    if (segment >= views_.size()) return {};
    const auto whole = views_[segment]->span();
    if (offset > whole.size() || bytes > whole.size() - offset) return {};
    return whole.subspan(offset, bytes);
  }

  Result<> copy_in(std::span<const std::byte> block, std::span<const Run> runs) override {
    for (const Run& run : runs) {
      if (run.bytes == 0) continue;
      const auto to = place(run.segment, run.segment_offset, run.bytes);
      if (to.empty() || views_[run.segment]->access() == Access::shared_read) {
        return fail(Code::invalid_argument, "no writable {} at {} of segment {}",
                    format_bytes(run.bytes), run.segment_offset, run.segment);
      }
      if (run.block_offset > block.size() || run.bytes > block.size() - run.block_offset) {
        return fail(Code::invalid_argument, "no {} at {} of a block of {}", format_bytes(run.bytes),
                    run.block_offset, format_bytes(block.size()));
      }
      stream_copy(to.data(), block.data() + run.block_offset, run.bytes);
    }
    return {};
  }

  Result<> copy_out(std::uint32_t segment, std::uint64_t offset, std::span<std::byte> to) override {
    if (to.empty()) return {};
    const auto from = place(segment, offset, to.size());
    if (from.empty()) {
      return fail(Code::invalid_argument, "no {} at {} of segment {}", format_bytes(to.size()),
                  offset, segment);
    }
    std::memcpy(to.data(), from.data(), to.size());
    return {};
  }

  Result<> finish() override { return {}; }

 private:
  std::vector<HostView*> views_;
};

}  // namespace

Result<std::unique_ptr<Writer>> make_host_writer(std::span<View* const> views) {
  std::vector<HostView*> own;
  own.reserve(views.size());
  for (View* const view : views) {
    auto* const host = dynamic_cast<HostView*>(view);
    if (host == nullptr) return fail(Code::invalid_argument, "a view that is not of host memory");
    own.push_back(host);
  }
  return std::make_unique<HostWriter>(std::move(own));
}

}  // namespace wc::memory
