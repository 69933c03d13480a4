#include "load/digest.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>
#include <xxhash.h>

#include "base/error.hpp"
#include "load/block_hash.hpp"

namespace wc::load {
namespace {

std::vector<std::byte> some_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  std::uint32_t state = 1;
  for (auto& byte : bytes) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<std::byte>(state >> 24);
  }
  return bytes;
}

std::array<std::byte, 16> reference(std::span<const std::byte> bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
  std::array<std::byte, 16> out = {};
  std::memcpy(out.data(), canonical.digest, 16);
  return out;
}

TEST(DigestTest, EveryKernelAgreesWithTheLibraryHoweverTheBytesArrive) {
  const auto bytes = some_bytes(300'000);
  ASSERT_FALSE(hash_kernels().empty());
  for (const HashKernel* const kernel : hash_kernels()) {
    for (const std::size_t size :
         {0U, 1U, 16U, 17U, 128U, 240U, 241U, 1024U, 4096U, 65'537U, 300'000U}) {
      for (const std::size_t step : {1U, 3U, 64U, 255U, 256U, 4096U, 300'000U}) {
        if (size / step > 10'000) continue;
        const auto whole = std::span(bytes).first(size);
        BlockHash hash(*kernel);
        for (std::size_t at = 0; at < size; at += step) {
          hash.update(whole.subspan(at, std::min(step, size - at)));
        }
        EXPECT_EQ(hash.finish(), reference(whole)) << kernel->name << " " << size << "/" << step;
      }
    }
  }
}

TEST(DigestTest, ResetBeginsAnew) {
  BlockHash hash;
  hash.update(some_bytes(1000));
  hash.reset();
  hash.update(some_bytes(10));
  EXPECT_EQ(hash.finish(), reference(some_bytes(10)));
}

TEST(DigestTest, TreeIsTheDigestOfTheListOfDigests) {
  const auto bytes = some_bytes(2 * kDigestBlockBytes + 12'345);
  std::vector<std::byte> list;
  for (std::size_t at = 0; at < bytes.size(); at += kDigestBlockBytes) {
    const auto block = std::span(bytes).subspan(at).first(
        std::min<std::size_t>(kDigestBlockBytes, bytes.size() - at));
    const auto digest = reference(block);
    list.insert(list.end(), digest.begin(), digest.end());
  }
  std::string wanted = "xxh3t-4m:";
  for (const auto byte : reference(list)) wanted += format("{:02x}", static_cast<unsigned>(byte));
  EXPECT_EQ(tree_digest(bytes), wanted);
}

TEST(DigestTest, KnownValuesStay) {
  // A change here makes every stored fingerprint worthless.
  EXPECT_EQ(tree_digest({}), "xxh3t-4m:99aa06d3014798d86001c324468d497f");
  const std::byte one = {};
  BlockHash hash;
  hash.update(std::span(&one, 1));
  TreeDigest tree(1);
  tree.set_block(0, hash.finish());
  EXPECT_EQ(tree.finish(), tree_digest(std::span(&one, 1)));
}

TEST(DigestTest, OrderOfBlocksMatters) {
  auto bytes = some_bytes(2 * kDigestBlockBytes);
  const auto before = tree_digest(bytes);
  std::ranges::rotate(bytes, bytes.begin() + static_cast<std::ptrdiff_t>(kDigestBlockBytes));
  EXPECT_NE(tree_digest(bytes), before);
}

}  // namespace
}  // namespace wc::load
