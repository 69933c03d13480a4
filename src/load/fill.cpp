#include "load/fill.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "load/block_buffer.hpp"
#include "load/block_source.hpp"
#include "load/digest.hpp"
#include "load/load_run.hpp"

namespace wc::load {
namespace {

// Brings blocks to their places: straight from the page cache where the memory is this process's,
// through a staged block elsewhere.
class FillWorker final : public BlockWorker {
 public:
  FillWorker(BlockSource source, const ReadPlan& plan, TierChooser& chooser,
             std::unique_ptr<memory::Writer> writer, std::vector<TreeDigest>* digests)
      : source_(std::move(source)),
        plan_(plan),
        chooser_(chooser),
        writer_(std::move(writer)),
        digests_(digests) {}

  Result<> take(const Block& block) override {
    plan_.pieces(block.shard, block.offset, block.bytes, pieces_);
    hash_.reset();
    BlockHash* const hash = digests_ != nullptr ? &hash_ : nullptr;
    TRY(bring(block, chooser_.choose(block), hash));
    if (digests_ != nullptr) (*digests_)[block.shard].set_block(block.index, hash_.finish());
    return {};
  }

  Result<> finish() override { return writer_->finish(); }

 private:
  Result<> bring(const Block& block, Tier tier, BlockHash* hash) {
    if (is_cached_tier(tier)) {
      bool in_place = false;
      if (worth_scattering(block)) in_place = TRY(gather_places());
      if (in_place) return source_.read_scattered(block, tier, places_, hash);
    } else if (pieces_.size() == 1 && pieces_.front().placed) {
      const auto place = place_of(pieces_.front());
      if (!place.empty() && source_.may_read_directly(block, place.data())) {
        return source_.read(block, tier, place, hash);
      }
    }
    const auto staged = TRY(writer_->stage(block.bytes));
    if (staged.empty()) return bring_through_buffer(block, tier, hash);
    TRY(source_.read(block, tier, staged.first(block.bytes), hash));
    return copy_in(staged.first(block.bytes), block.offset);
  }

  static bool is_cached_tier(Tier tier) { return tier == Tier::hot || tier == Tier::buffered; }

  std::span<std::byte> place_of(const Piece& piece) {
    return writer_->place(piece.segment, piece.segment_offset, piece.bytes);
  }

  // Below some size of its pieces a block is brought to its places faster by copies from the cache
  // than by the kernel's walk over a list of places.
  [[nodiscard]] bool worth_scattering(const Block& block) const {
    constexpr std::uint64_t kLeastBytes = 4096;
    return pieces_.size() * kLeastBytes <= block.bytes;
  }

  // False: the memory can't be read into.
  Result<bool> gather_places() {
    places_.clear();
    std::uint64_t unplaced = 0;
    for (const Piece& piece : pieces_) {
      if (!piece.placed) unplaced += piece.bytes;
    }
    std::span<std::byte> unwanted;
    if (unplaced > 0) unwanted = TRY(buffer_.get(unplaced));
    for (const Piece& piece : pieces_) {
      std::span<std::byte> place;
      if (piece.placed) {
        place = place_of(piece);
        if (place.empty()) return false;
      } else {
        place = unwanted.first(piece.bytes);
        unwanted = unwanted.subspan(piece.bytes);
      }
      places_.push_back({place.data(), place.size()});
    }
    return true;
  }

  // Through this thread's own buffer, in chunks that are still in its cache when they are copied:
  // small ones from the page cache; from the disk the whole block, since it likes long reads.
  Result<> bring_through_buffer(const Block& block, Tier tier, BlockHash* hash) {
    const auto buffer = TRY(buffer_.get(block.bytes));
    const bool by_chunks = tier == Tier::hot;
    if (!by_chunks) TRY(source_.read(block, tier, buffer, nullptr));
    for (std::uint64_t at = 0; at < block.bytes; at += kChunkBytes) {
      Block part = block;
      part.offset += at;
      part.bytes = std::min(kChunkBytes, block.bytes - at);
      const auto bytes = by_chunks ? buffer.first(part.bytes) : buffer.subspan(at, part.bytes);
      if (by_chunks) TRY(source_.read(part, tier, bytes, nullptr));
      if (hash != nullptr) hash->update(bytes);
      plan_.pieces(part.shard, part.offset, part.bytes, pieces_);
      TRY(copy_in(bytes, part.offset));
      TRY(writer_->finish());  // before the buffer is used again
    }
    return {};
  }

  // Takes the pieces of a stretch of the file to their places.
  Result<> copy_in(std::span<const std::byte> bytes, std::uint64_t file_offset) {
    runs_.clear();
    for (const Piece& piece : pieces_) {
      if (!piece.placed) continue;
      runs_.push_back({.block_offset = piece.file_offset - file_offset,
                       .segment_offset = piece.segment_offset,
                       .bytes = piece.bytes,
                       .segment = piece.segment});
    }
    return writer_->copy_in(bytes, runs_);
  }

  static constexpr std::uint64_t kChunkBytes = std::uint64_t{256} << 10;

  BlockSource source_;
  const ReadPlan& plan_;
  TierChooser& chooser_;
  BlockBuffer buffer_;  // outlives the writer, which may still be copying out of it
  std::unique_ptr<memory::Writer> writer_;
  std::vector<TreeDigest>* digests_;
  BlockHash hash_;
  std::vector<Piece> pieces_;
  std::vector<iovec> places_;
  std::vector<memory::Run> runs_;
};

std::vector<TreeDigest> empty_digests(const checkpoint::Checkpoint& checkpoint) {
  std::vector<TreeDigest> digests;
  for (const auto& shard : checkpoint.shards()) digests.emplace_back(shard.receipt.size_bytes);
  return digests;
}

}  // namespace

Result<FillResult> fill_in(const LoadContext& context, const LoadParts& parts,
                           const FillOptions& options) {
  TRY(check_views(parts, true));
  const ReadPlan plan(parts.checkpoint, parts.placement, options.digest);
  std::vector<TreeDigest> digests;
  if (options.digest) digests = empty_digests(parts.checkpoint);
  const auto make = [&](OpenFiles& files,
                        TierChooser& chooser) -> Result<std::unique_ptr<BlockWorker>> {
    auto writer = TRY(parts.device.writer(parts.views, kDigestBlockBytes));
    return std::make_unique<FillWorker>(BlockSource(context.calls, files, chooser), plan, chooser,
                                        std::move(writer), options.digest ? &digests : nullptr);
  };
  const RunOutcome outcome = TRY(run_load(context, parts, plan, make, options));
  FillResult result;
  for (const TreeDigest& digest : digests) result.digests.push_back(digest.finish());
  result.bytes = plan.bytes();
  result.tier = outcome.tier;
  result.leased = outcome.leased;
  result.elapsed = outcome.elapsed;
  return result;
}

Result<FillResult> fill(const checkpoint::Checkpoint& checkpoint, const Placement& placement,
                        memory::Device& device, std::span<memory::View* const> views,
                        const FillOptions& options) {
  return fill_in(system_context(), {checkpoint, placement, device, views}, options);
}

}  // namespace wc::load
