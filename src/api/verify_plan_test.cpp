#include "api/verify_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/identity.hpp"
#include "api/load_manifest.hpp"
#include "tests/support/make_checkpoint.hpp"
#include "tests/support/temp_folder.hpp"

namespace wc::api {
namespace {

using support::made_tensor;
using ::testing::HasSubstr;
using ::testing::Not;

class VerifyPlanTest : public ::testing::Test {
 protected:
  [[nodiscard]] checkpoint::Checkpoint make(const std::string& name,
                                            const std::vector<support::MadeShard>& shards) const {
    auto opened =
        checkpoint::Checkpoint::open(support::write_checkpoint(folder_.path() / name, shards));
    EXPECT_TRUE(opened) << opened.error().message;
    return *std::move(opened);
  }
  [[nodiscard]] static std::vector<support::MadeShard> two_shards() {
    return {{.name = "model-00001-of-00002.safetensors",
             .tensors = {made_tensor("a", 1000), made_tensor("b", 512)},
             .metadata = R"({"format":"pt","part":"1"})"},
            {.name = "model-00002-of-00002.safetensors",
             .tensors = {made_tensor("c", 3)},
             .metadata = R"({"format":"pt","part":"2"})"}};
  }

  /// The bytes of the manifest that a load of it would publish.
  [[nodiscard]] static std::vector<std::byte> manifest_bytes(
      const checkpoint::Checkpoint& checkpoint) {
    const auto placement = load::place(checkpoint);
    EXPECT_TRUE(placement);
    const std::vector<std::string> digests(checkpoint.shards().size(),
                                           "xxh3t-4m:" + std::string(32, 'a'));
    auto builder = manifest_of({.checkpoint = checkpoint,
                                .placement = *placement,
                                .digests = digests,
                                .provenance = provenance_of_this_process()});
    EXPECT_TRUE(builder) << builder.error().message;
    EXPECT_TRUE(builder->set_fingerprint(fingerprint_of(checkpoint, digests)));
    auto bytes = builder->finish();
    EXPECT_TRUE(bytes) << bytes.error().message;
    return *std::move(bytes);
  }

 private:
  support::TempFolder folder_;
};

TEST_F(VerifyPlanTest, AddressesAndFlagsOfSegmentsAreInTheManifest) {
  const auto checkpoint = make("x", two_shards());
  const auto placement = load::place(checkpoint);
  ASSERT_TRUE(placement);
  const std::vector<std::uint64_t> addresses(placement->segment_bytes.size(), 0x2000'0000'0000);
  auto builder = manifest_of({.checkpoint = checkpoint,
                              .placement = *placement,
                              .digests = {},
                              .addresses = addresses,
                              .segment_flags = 5,
                              .provenance = provenance_of_this_process()});
  ASSERT_TRUE(builder) << builder.error().message;
  manifest::Fingerprint fingerprint;
  fingerprint.source.source_id = "x";
  ASSERT_TRUE(builder->set_fingerprint(fingerprint));
  const auto bytes = builder->finish();
  ASSERT_TRUE(bytes) << bytes.error().message;
  const auto manifest = manifest::Manifest::check(*bytes);
  ASSERT_TRUE(manifest) << manifest.error().message;
  EXPECT_EQ(manifest->segments()[0].address, 0x2000'0000'0000U);
  EXPECT_EQ(manifest->segments()[0].flags, 5U);
}

TEST_F(VerifyPlanTest, WhatWasLoadedIsPlacedWhereTheLoaderPutIt) {
  const auto checkpoint = make("x", two_shards());
  const auto bytes = manifest_bytes(checkpoint);
  const auto manifest = manifest::Manifest::check(bytes);
  ASSERT_TRUE(manifest) << manifest.error().message;
  const auto placement = placement_of(*manifest, checkpoint);
  ASSERT_TRUE(placement) << placement.error().message;
  const auto loaded = load::place(checkpoint);
  ASSERT_EQ(placement->tensors.size(), loaded->tensors.size());
  for (std::size_t i = 0; i < loaded->tensors.size(); ++i) {
    EXPECT_EQ(placement->tensors[i].segment, loaded->tensors[i].segment);
    EXPECT_EQ(placement->tensors[i].offset, loaded->tensors[i].offset);
  }
  EXPECT_EQ(placement->segment_bytes, loaded->segment_bytes);
  std::uint64_t covered = 0;
  for (const auto& runs : placement->shard_runs) {
    for (const auto& run : runs) covered += run.bytes;
  }
  EXPECT_EQ(covered, checkpoint.tensor_bytes());
}

TEST_F(VerifyPlanTest, MetadataIsAnAttributeOfTheRootOncePerValue) {
  const auto bytes = manifest_bytes(make("x", two_shards()));
  const auto manifest = manifest::Manifest::check(bytes);
  ASSERT_TRUE(manifest);
  std::vector<std::string> found;
  for (const auto& attribute : manifest->attributes())
    found.push_back(format("{}={}", attribute.name, std::get<std::string_view>(attribute.value)));
  EXPECT_THAT(found,
              ::testing::UnorderedElementsAre(
                  "safetensors.format=pt", "safetensors.part@model-00001-of-00002.safetensors=1",
                  "safetensors.part@model-00002-of-00002.safetensors=2"));
}

TEST_F(VerifyPlanTest, EveryKindOfDifferenceIsNamed) {
  const auto bytes = manifest_bytes(make("x", two_shards()));
  const auto manifest = manifest::Manifest::check(bytes);
  ASSERT_TRUE(manifest);
  support::MadeTensor other_dtype = made_tensor("b", 512);
  other_dtype.dtype = "I8";
  const auto on_disk =
      make("y", {{.tensors = {made_tensor("a", 1001), other_dtype, made_tensor("d", 3)}}});
  const auto placement = placement_of(*manifest, on_disk);
  ASSERT_FALSE(placement);
  EXPECT_EQ(placement.error().code, Code::mismatch);
  const std::string& message = placement.error().message;
  EXPECT_THAT(message, HasSubstr("4 of the tensors"));
  EXPECT_THAT(message, HasSubstr("tensor \"a\": shape [1000] is [1001] on disk"));
  EXPECT_THAT(message, HasSubstr("tensor \"b\": dtype U8 is I8 on disk"));
  EXPECT_THAT(message, HasSubstr("tensor \"d\": is on disk alone"));
  EXPECT_THAT(message, HasSubstr("tensor \"c\": is not on disk"));
}

TEST_F(VerifyPlanTest, TenAreNamedAndTheRestCounted) {
  support::MadeShard many;
  for (int i = 0; i < 30; ++i) many.tensors.push_back(made_tensor(format("t{}", i), 8));
  const auto bytes = manifest_bytes(make("x", {many}));
  const auto manifest = manifest::Manifest::check(bytes);
  ASSERT_TRUE(manifest);
  const auto placement = placement_of(*manifest, make("y", {{.tensors = {made_tensor("t0", 8)}}}));
  ASSERT_FALSE(placement);
  EXPECT_THAT(placement.error().message, HasSubstr("29 of the tensors"));
  EXPECT_THAT(placement.error().message, HasSubstr("and 19 more"));
}

TEST_F(VerifyPlanTest, StructureIsThatOfTheTensorsWhateverTheirShards) {
  const std::string structure = structure_of(make("x", two_shards()));
  EXPECT_EQ(structure.size(), 32U);
  const auto one_shard = make(
      "y", {{.tensors = {made_tensor("c", 3), made_tensor("a", 1000), made_tensor("b", 512)}}});
  EXPECT_EQ(structure_of(one_shard), structure);
  const auto other = make(
      "z", {{.tensors = {made_tensor("c", 3), made_tensor("a", 1000), made_tensor("b", 513)}}});
  EXPECT_NE(structure_of(other), structure);
}

}  // namespace
}  // namespace wc::api
