#include "load/block_source.hpp"

#include <algorithm>
#include <chrono>
#include <climits>
#include <utility>

#include "base/units.hpp"
#include "load/digest.hpp"
#include "load/file_reader.hpp"

namespace wc::load {
namespace {

using Clock = std::chrono::steady_clock;

std::span<const std::byte> bytes_of(const iovec& place) {
  return {static_cast<const std::byte*>(place.iov_base), place.iov_len};
}

// Moves the next `limit` bytes of the places, IOV_MAX places at most, into a chunk. What is left.
std::span<iovec> take_chunk(std::span<iovec> places, std::uint64_t limit,
                            std::vector<iovec>& chunk) {
  chunk.clear();
  while (!places.empty() && limit > 0 && chunk.size() < IOV_MAX) {
    iovec& first = places.front();
    if (first.iov_len <= limit) {
      chunk.push_back(first);
      limit -= first.iov_len;
      places = places.subspan(1);
      continue;
    }
    chunk.push_back({first.iov_base, limit});
    first.iov_base = static_cast<std::byte*>(first.iov_base) + limit;
    first.iov_len -= limit;
    limit = 0;
  }
  return places;
}

}  // namespace

Result<> BlockSource::read(const Block& block, Tier tier, std::span<std::byte> to,
                           BlockHash* hash) {
  if (tier == Tier::hot || tier == Tier::buffered) {
    iovec place = {to.data(), to.size()};
    return read_scattered(block, tier, std::span(&place, 1), hash);
  }
  const auto begin = Clock::now();
  OpenFile& file = files_[block.shard];
  auto direct = read_direct(file, block, tier, to);
  if (!direct) {
    if (direct.error().code == Code::corrupt) return Failure(std::move(direct).error());
    chooser_.direct_failed(file, direct.error());
    iovec place = {to.data(), to.size()};
    return read_scattered(block, Tier::buffered, std::span(&place, 1), hash);
  }
  // The end of a file is seldom aligned: it is read through the page cache, on the other
  // descriptor.
  const auto tail = to.subspan(*direct);
  TRY(read_into(calls_, {file.buffered(), file.name(), block.offset + *direct}, tail));
  if (hash != nullptr) hash->update(to);
  chooser_.report(block, tier, Clock::now() - begin);
  return file.check_lease();
}

Result<> BlockSource::read_scattered(const Block& block, Tier tier, std::span<iovec> places,
                                     BlockHash* hash) {
  const auto begin = Clock::now();
  OpenFile& file = files_[block.shard];
  if (tier == Tier::buffered) file.advise_sequential();
  // From the disk a block comes faster in one read: readahead goes by the size of reads.
  const bool by_cache = tier == Tier::hot && hash != nullptr;
  TRY(read_buffered(file, {block.offset, by_cache ? kCacheBytes : kDigestBlockBytes}, places,
                    hash));
  if (tier == Tier::buffered) file.drop_cached(block.offset, block.bytes);
  chooser_.report(block, tier, Clock::now() - begin);
  return file.check_lease();
}

Result<> BlockSource::read_buffered(OpenFile& file, Chunks chunks, std::span<iovec> places,
                                    BlockHash* hash) {
  std::uint64_t offset = chunks.offset;
  while (!places.empty()) {
    places = take_chunk(places, chunks.bytes, chunk_);
    reading_ = chunk_;  // read_into uses its places up, the digest needs them again
    TRY(read_into(calls_, {file.buffered(), file.name(), offset}, reading_));
    for (const iovec& place : chunk_) {
      if (hash != nullptr) hash->update(bytes_of(place));
      offset += place.iov_len;
    }
  }
  return {};
}

bool BlockSource::may_read_directly(const Block& block, const std::byte* to) {
  const auto direct = files_[block.shard].direct();
  return direct && reinterpret_cast<std::uintptr_t>(to) % direct->limits.memory_alignment == 0 &&
         block.offset % direct->limits.offset_alignment == 0;
}

// The bytes that came: all, or fewer by an unaligned rest.
Result<std::uint64_t> BlockSource::read_direct(OpenFile& file, const Block& block, Tier tier,
                                               std::span<std::byte> to) {
  const OpenFile::Direct direct = TRY(file.direct());
  const std::uint64_t alignment = direct.limits.offset_alignment;
  const auto address = reinterpret_cast<std::uintptr_t>(to.data());
  if (block.offset % alignment != 0 || address % direct.limits.memory_alignment != 0) {
    return fail(Code::unsupported, "direct reads want an alignment of {}", format_bytes(alignment));
  }
  const auto aligned = to.first(to.size() / alignment * alignment);
  if (tier == Tier::direct_uring) {
    auto got = read_uring(direct.fd, block.offset, aligned);
    if (got) return got;
    chooser_.uring_failed(got.error());
  }
  std::uint64_t done = 0;
  int repeats = 0;
  while (done < aligned.size()) {
    const auto rest = aligned.subspan(done);
    const iovec place = {rest.data(), rest.size()};
    const ssize_t got = calls_.read(direct.fd, std::span(&place, 1), block.offset + done, 0);
    if (got < 0) {
      const int error = errno;
      constexpr int kMaxRepeats = 1000;
      if ((error == EINTR || error == EAGAIN) && ++repeats < kMaxRepeats) continue;
      return fail_os(Code::io, error, "\"{}\": direct read at byte {}", file.name(),
                     format_count(block.offset + done));
    }
    if (got == 0) return file_shrank(file.name(), block.offset + done);
    done += static_cast<std::uint64_t>(got);
    if (done % alignment != 0) break;  // can't be continued directly
  }
  return done;
}

Result<std::uint64_t> BlockSource::read_uring(FdView fd, std::uint64_t offset,
                                              std::span<std::byte> to) {
  if (!uring_) {
    auto made = UringReader::create();
    if (!made) return Failure(std::move(made).error());
    uring_.emplace(std::move(*made));
  }
  auto got = uring_->read(fd, offset, to);
  if (!got) uring_.reset();  // what it had not yet submitted must not be submitted later
  return got;
}

}  // namespace wc::load
