#include "load/digest.hpp"

#include <algorithm>
#include <cstring>

#include "base/error.hpp"
#include "load/block_hash.hpp"

namespace wc::load {
namespace {

constexpr std::size_t kHashBytes = 16;

std::uint64_t blocks_of(std::uint64_t file_bytes) {
  return file_bytes / kDigestBlockBytes + (file_bytes % kDigestBlockBytes != 0 ? 1 : 0);
}

}  // namespace

TreeDigest::TreeDigest(std::uint64_t file_bytes) : blocks_(blocks_of(file_bytes) * kHashBytes) {}

void TreeDigest::set_block(std::uint64_t index, std::span<const std::byte, 16> canonical) {
  std::memcpy(blocks_.data() + index * kHashBytes, canonical.data(), kHashBytes);
}

std::string TreeDigest::finish() const {
  BlockHash hash;
  hash.update(blocks_);
  std::string text = "xxh3t-4m:";
  for (const std::byte byte : hash.finish()) {
    text += format("{:02x}", std::to_integer<unsigned>(byte));
  }
  return text;
}

std::string tree_digest(std::span<const std::byte> bytes) {
  TreeDigest tree(bytes.size());
  for (std::uint64_t at = 0; at < bytes.size(); at += kDigestBlockBytes) {
    BlockHash hash;
    hash.update(bytes.subspan(at, std::min(kDigestBlockBytes, bytes.size() - at)));
    tree.set_block(at / kDigestBlockBytes, hash.finish());
  }
  return tree.finish();
}

}  // namespace wc::load
