#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "load/block_buffer.hpp"
#include "load/block_source.hpp"
#include "load/digest.hpp"
#include "load/fill.hpp"
#include "load/load_run.hpp"

namespace wc::load {
namespace {

// The first differing byte of each tensor that differs. Threads add to it together.
class Findings {
 public:
  explicit Findings(std::span<const checkpoint::Tensor> tensors) : tensors_(tensors) {}

  /// Bytes of a shard differ from `begin` on, somewhere before `end`, tensor by tensor.
  template <typename FirstDifference>
  void add(const Piece& piece, std::uint32_t shard, const FirstDifference& first_difference) {
    const std::uint64_t end = piece.file_offset + piece.bytes;
    auto at = std::ranges::partition_point(tensors_, [&](const checkpoint::Tensor& tensor) {
      return tensor.shard < shard || (tensor.shard == shard && tensor.offset <= piece.file_offset);
    });
    // The piece may begin inside the last tensor with bytes before it.
    while (at != tensors_.begin() && std::prev(at)->shard == shard) {
      if ((--at)->bytes > 0) break;
    }
    for (; at != tensors_.end() && at->shard == shard && at->offset < end; ++at) {
      const std::uint64_t from = std::max(at->offset, piece.file_offset);
      const std::uint64_t to = std::min(at->offset + at->bytes, end);
      if (from >= to) continue;
      const std::uint64_t different = first_difference(from, to);
      if (different < to)
        note(static_cast<std::uint32_t>(at - tensors_.begin()), different - at->offset);
    }
  }

  [[nodiscard]] std::vector<Mismatch> first(std::size_t limit) const {
    std::vector<Mismatch> mismatches;
    for (const auto& [tensor, offset] : offsets_) {
      if (mismatches.size() == limit) break;
      mismatches.push_back({.tensor = tensor, .offset = offset});
    }
    return mismatches;
  }

 private:
  void note(std::uint32_t tensor, std::uint64_t offset) {
    const std::scoped_lock lock(mutex_);
    const auto [at, is_new] = offsets_.try_emplace(tensor, offset);
    if (!is_new) at->second = std::min(at->second, offset);
  }

  std::span<const checkpoint::Tensor> tensors_;
  std::mutex mutex_;
  std::map<std::uint32_t, std::uint64_t> offsets_;
};

// Reads blocks beside the resident ones, and compares.
class CompareWorker final : public BlockWorker {
 public:
  CompareWorker(BlockSource source, const ReadPlan& plan, TierChooser& chooser,
                std::unique_ptr<memory::Writer> writer, Findings& findings)
      : source_(std::move(source)),
        plan_(plan),
        chooser_(chooser),
        writer_(std::move(writer)),
        findings_(findings) {}

  Result<> take(const Block& block) override {
    const auto read = TRY(buffer_.get(block.bytes));
    TRY(source_.read(block, chooser_.choose(block), read, nullptr));
    plan_.pieces(block.shard, block.offset, block.bytes, pieces_);
    std::erase_if(pieces_, [](const Piece& piece) { return !piece.placed; });
    for (std::span<const Piece> rest = pieces_; !rest.empty();) {
      const auto group = rest.first(neighbours(rest));
      const auto resident = TRY(bring(group));
      for (const Piece& piece : group) {
        compare(block, piece, read.subspan(piece.file_offset - block.offset, piece.bytes),
                resident.subspan(piece.segment_offset - group.front().segment_offset, piece.bytes));
      }
      rest = rest.subspan(group.size());
    }
    return {};
  }

  Result<> finish() override { return writer_->finish(); }

 private:
  // How many pieces, from the first on, lie in one stretch of a segment that a buffer holds: what
  // is between them is padding, and cheaper copied than stepped over.
  static std::size_t neighbours(std::span<const Piece> pieces) {
    std::size_t count = 1;
    while (count < pieces.size() && pieces[count].segment == pieces[0].segment &&
           pieces[count].segment_offset >= pieces[0].segment_offset &&
           pieces[count].segment_offset + pieces[count].bytes - pieces[0].segment_offset <=
               kDigestBlockBytes) {
      ++count;
    }
    return count;
  }

  // The resident bytes from the first of these pieces to the last: in place, or copied out.
  Result<std::span<const std::byte>> bring(std::span<const Piece> pieces) {
    const Piece& first = pieces.front();
    const std::uint64_t bytes =
        pieces.back().segment_offset + pieces.back().bytes - first.segment_offset;
    const auto place = writer_->place(first.segment, first.segment_offset, bytes);
    if (!place.empty()) return std::span<const std::byte>(place);
    // A device's writer has pinned memory for blocks; into any other its copies are slow.
    auto copy = TRY(writer_->stage(bytes));
    if (copy.empty()) copy = TRY(resident_.get(bytes));
    copy = copy.first(bytes);
    TRY(writer_->copy_out(first.segment, first.segment_offset, copy));
    return std::span<const std::byte>(copy);
  }

  void compare(const Block& block, const Piece& piece, std::span<const std::byte> wanted,
               std::span<const std::byte> resident) {
    if (std::memcmp(resident.data(), wanted.data(), piece.bytes) == 0) return;
    findings_.add(piece, block.shard, [&](std::uint64_t from, std::uint64_t to) {
      const std::uint64_t skip = from - piece.file_offset;
      const auto differ =
          std::ranges::mismatch(wanted.subspan(skip, to - from), resident.subspan(skip, to - from));
      return piece.file_offset + static_cast<std::uint64_t>(&*differ.in1 - wanted.data());
    });
  }

  BlockSource source_;
  const ReadPlan& plan_;
  TierChooser& chooser_;
  BlockBuffer buffer_;
  BlockBuffer resident_;
  std::unique_ptr<memory::Writer> writer_;
  Findings& findings_;
  std::vector<Piece> pieces_;
};

}  // namespace

Result<std::vector<Mismatch>> compare_in(const LoadContext& context, const LoadParts& parts,
                                         std::size_t limit, const FillOptions& options) {
  TRY(check_views(parts, false));
  const ReadPlan plan(parts.checkpoint, parts.placement, false);
  Findings findings(parts.checkpoint.tensors());
  const auto make = [&](OpenFiles& files,
                        TierChooser& chooser) -> Result<std::unique_ptr<BlockWorker>> {
    auto writer = TRY(parts.device.writer(parts.views, kDigestBlockBytes));
    return std::make_unique<CompareWorker>(BlockSource(context.calls, files, chooser), plan,
                                           chooser, std::move(writer), findings);
  };
  TRY(run_load(context, parts, plan, make, options));
  return findings.first(limit);
}

Result<std::vector<Mismatch>> compare(const checkpoint::Checkpoint& checkpoint,
                                      const Placement& placement, memory::Device& device,
                                      std::span<memory::View* const> views, std::size_t limit,
                                      const FillOptions& options) {
  return compare_in(system_context(), {checkpoint, placement, device, views}, limit, options);
}

}  // namespace wc::load
