#include "memory/cuda/staging_writer.hpp"

#include <array>
#include <vector>

#include "base/units.hpp"
#include "memory/cuda/numa.hpp"

namespace wc::memory::cuda {
namespace {

struct Block {
  PinnedBuffer buffer;
  Event copied;
  bool in_flight = false;
};

class StagingWriter final : public Writer {
 public:
  StagingWriter(const Driver& driver, const PrimaryContext& context, std::vector<Range> segments)
      : driver_(&driver), context_(&context), segments_(std::move(segments)) {}

  StagingWriter(const StagingWriter&) = delete;
  StagingWriter& operator=(const StagingWriter&) = delete;
  StagingWriter(StagingWriter&&) = delete;
  StagingWriter& operator=(StagingWriter&&) = delete;

  // The driver takes streams, events and pinned memory back in their own context only, and a block
  // may go only when nothing reads it any more.
  ~StagingWriter() override {
    const auto current = CurrentContext::push(*driver_, *context_);
    if (stream_) (void)driver_->cuStreamSynchronize(stream_.get());
    for (Block& block : blocks_) block = Block{};
    stream_.reset();
  }

  Result<> open(const std::string& pci, std::uint64_t block_bytes) {
    const CurrentContext current = TRY(CurrentContext::push(*driver_, *context_));
    const PreferredNode node(numa_node_of(pci));
    stream_ = TRY(create_stream(*driver_));
    for (Block& block : blocks_) {
      block.buffer = TRY(allocate_pinned(*driver_, block_bytes));
      block.copied = TRY(create_event(*driver_));
    }
    return {};
  }

  [[nodiscard]] Result<std::span<std::byte>> stage(std::uint64_t bytes) override {
    const CurrentContext current = TRY(CurrentContext::push(*driver_, *context_));
    TRY(settle_foreign());
    next_ = 1 - next_;
    Block& block = blocks_.at(next_);
    if (bytes > block.buffer.get().size()) {
      return fail(Code::invalid_argument, "a block of {} was asked for; the writer has {}",
                  format_bytes(bytes), format_bytes(block.buffer.get().size()));
    }
    if (block.in_flight) {
      TRY(WC_CU_CALL(*driver_, cuEventSynchronize, block.copied.get()));
      block.in_flight = false;
    }
    return block.buffer.get().first(bytes);
  }

  [[nodiscard]] std::span<std::byte> place(std::uint32_t /*segment*/, std::uint64_t /*offset*/,
                                           std::uint64_t /*bytes*/) override {
    return {};
  }

  [[nodiscard]] Result<> copy_in(std::span<const std::byte> block,
                                 std::span<const Run> runs) override {
    const CurrentContext current = TRY(CurrentContext::push(*driver_, *context_));
    for (const Run& run : runs) {
      if (run.block_offset > block.size() || run.bytes > block.size() - run.block_offset) {
        return fail(Code::invalid_argument, "a run of {} at {} leaves its block of {}",
                    format_bytes(run.bytes), format_count(run.block_offset),
                    format_bytes(block.size()));
      }
      const CuDevicePtr to = TRY(address_of(run.segment, run.segment_offset, run.bytes));
      TRY(WC_CU_CALL(*driver_, cuMemcpyHtoDAsync, to, block.data() + run.block_offset, run.bytes,
                     stream_.get()));
    }
    Block& staged = blocks_.at(next_);
    const auto own = staged.buffer.get();
    if (block.data() >= own.data() && block.data() < own.data() + own.size()) {
      TRY(WC_CU_CALL(*driver_, cuEventRecord, staged.copied.get(), stream_.get()));
      staged.in_flight = true;
    } else {
      foreign_in_flight_ = true;
    }
    return {};
  }

  [[nodiscard]] Result<> copy_out(std::uint32_t segment, std::uint64_t offset,
                                  std::span<std::byte> to) override {
    const CurrentContext current = TRY(CurrentContext::push(*driver_, *context_));
    const CuDevicePtr from = TRY(address_of(segment, offset, to.size()));
    TRY(WC_CU_CALL(*driver_, cuMemcpyDtoHAsync, to.data(), from, to.size(), stream_.get()));
    return WC_CU_CALL(*driver_, cuStreamSynchronize, stream_.get());
  }

  [[nodiscard]] Result<> finish() override {
    const CurrentContext current = TRY(CurrentContext::push(*driver_, *context_));
    TRY(WC_CU_CALL(*driver_, cuStreamSynchronize, stream_.get()));
    for (Block& block : blocks_) block.in_flight = false;
    foreign_in_flight_ = false;
    return {};
  }

 private:
  // Memory that is not the ring's may be the caller's pinned memory: its copy must be over too.
  Result<> settle_foreign() {
    if (!foreign_in_flight_) return {};
    TRY(WC_CU_CALL(*driver_, cuStreamSynchronize, stream_.get()));
    foreign_in_flight_ = false;
    return {};
  }

  [[nodiscard]] Result<CuDevicePtr> address_of(std::uint32_t segment, std::uint64_t offset,
                                               std::uint64_t bytes) const {
    if (segment >= segments_.size() || offset > segments_[segment].bytes ||
        bytes > segments_[segment].bytes - offset) {
      return fail(Code::invalid_argument, "{} at {} of segment {} lie outside of it",
                  format_bytes(bytes), format_count(offset), segment);
    }
    return segments_[segment].address + offset;
  }

  const Driver* driver_;
  const PrimaryContext* context_;
  std::vector<Range> segments_;
  std::array<Block, 2> blocks_;
  std::size_t next_ = 0;
  Stream stream_;
  bool foreign_in_flight_ = false;
};

}  // namespace

Result<std::unique_ptr<Writer>> make_staging_writer(const Driver& driver,
                                                    const PrimaryContext& context,
                                                    const std::string& pci,
                                                    std::span<View* const> views,
                                                    std::uint64_t block_bytes) {
  std::vector<Range> segments;
  for (const View* view : views) segments.push_back({view->address(), view->bytes()});
  auto writer = std::make_unique<StagingWriter>(driver, context, std::move(segments));
  TRY(writer->open(pci, block_bytes));
  return writer;
}

}  // namespace wc::memory::cuda
