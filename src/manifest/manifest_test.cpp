#include "manifest/manifest.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "manifest/testing.hpp"

namespace wc::manifest {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ManifestTest : public testing::Test {
 protected:
  ManifestTest() {
    auto bytes = sample_builder().finish();
    if (bytes) buffer_ = std::move(*bytes);
  }
  Manifest manifest() const {
    auto checked = Manifest::check(buffer_);
    EXPECT_TRUE(checked) << checked.error().message;
    return *checked;
  }
  TensorView tensor(std::string_view name) const {
    const Manifest all = manifest();
    const auto index = all.find(name);
    EXPECT_TRUE(index) << name;
    return all.tensor(index.value_or(0));
  }
  std::vector<std::byte> buffer_;
};

TEST_F(ManifestTest, GivesTensorsInThePublishersOrderAndByName) {
  const Manifest all = manifest();
  std::vector<std::string_view> given;
  std::vector<std::string_view> sorted;
  for (std::uint32_t at = 0; at < all.tensor_count(); ++at) {
    given.push_back(all.tensor(at).name);
    sorted.push_back(all.tensor_name(all.by_name(at)));
  }
  EXPECT_THAT(given, ElementsAre("w", "w.view", "w.tied", "scale", "empty", "slice", "packed"));
  EXPECT_THAT(sorted, ElementsAre("empty", "packed", "scale", "slice", "w", "w.tied", "w.view"));
  for (std::uint32_t at = 0; at < given.size(); ++at) EXPECT_EQ(all.find(given[at]), at);
}

TEST_F(ManifestTest, DoesNotFindWhatIsNotThere) {
  for (const char* name : {"", "a", "v", "w.", "w.viewer", "zzz", "W"})
    EXPECT_EQ(manifest().find(name), std::nullopt) << name;
}

TEST_F(ManifestTest, KeepsEveryFieldOfATensor) {
  const TensorView w = tensor("w");
  EXPECT_EQ(w.dtype, Dtype::f32);
  EXPECT_THAT(w.shape, ElementsAre(2, 3));
  EXPECT_TRUE(w.strides.empty());
  EXPECT_EQ(w.segment, 0U);
  EXPECT_EQ(w.offset, 512U);
  EXPECT_EQ(w.bytes, 24U);
  EXPECT_EQ(w.kind, Kind::parameter);
  EXPECT_TRUE(w.persistent);
  EXPECT_FALSE(w.requires_grad);
  EXPECT_FALSE(w.view);
  EXPECT_EQ(w.file, 0U);
  EXPECT_EQ(w.file_offset, 100U);
}

TEST_F(ManifestTest, KeepsFlagsApart) {
  EXPECT_TRUE(tensor("w.tied").requires_grad);
  EXPECT_EQ(tensor("w.tied").kind, Kind::parameter);
  EXPECT_FALSE(tensor("w.tied").file);
  EXPECT_EQ(tensor("scale").kind, Kind::buffer);
  EXPECT_FALSE(tensor("scale").persistent);
  EXPECT_FALSE(tensor("scale").view);
  EXPECT_TRUE(tensor("slice").view);
  EXPECT_TRUE(tensor("slice").persistent);
}

TEST_F(ManifestTest, TellsScalarsEmptyPackedAndStridedTensorsApart) {
  EXPECT_TRUE(tensor("scale").shape.empty());
  EXPECT_EQ(tensor("scale").bytes, 8U);
  EXPECT_THAT(tensor("empty").shape, ElementsAre(0, 7));
  EXPECT_EQ(tensor("empty").bytes, 0U);
  EXPECT_EQ(tensor("packed").bytes, 1U);
  EXPECT_THAT(tensor("w.view").strides, ElementsAre(3));
  EXPECT_EQ(tensor("w.view").bytes, 16U);  // from the first element to the second one's end
}

TEST_F(ManifestTest, GivesSegmentsAndTheirSums) {
  const Manifest all = manifest();
  ASSERT_EQ(all.segments().size(), 2U);
  const SegmentView first = all.segments()[0];
  EXPECT_EQ(first.bytes, 4096U);
  EXPECT_EQ(first.used_bytes, 3000U);
  EXPECT_EQ(first.digest, kSampleDigest);
  EXPECT_EQ(first.address, 0x200000000U);
  EXPECT_EQ(first.flags, kSegmentGpuDirectRdma);
  EXPECT_EQ(all.segments()[1].digest, "");
  EXPECT_EQ(all.segment_bytes(), 12288U);
  EXPECT_EQ(all.used_bytes(), 11192U);
}

TEST_F(ManifestTest, GivesFilesWithTheirReceipts) {
  ASSERT_EQ(manifest().files().size(), 1U);
  const FileView file = manifest().files()[0];
  EXPECT_EQ(file.name, "model.safetensors");
  EXPECT_EQ(file.bytes, 65536U);
  EXPECT_EQ(file.digest, kSampleDigest);
  EXPECT_EQ(file.device, 1U);
  EXPECT_EQ(file.inode, 2U);
  EXPECT_EQ(file.mtime_ns, 3);
  EXPECT_EQ(file.ctime_ns, 4);
}

TEST_F(ManifestTest, GivesTypedAttributesOfAPath) {
  const Manifest all = manifest();
  EXPECT_EQ(all.attributes().size(), 5U);
  const auto of_w = all.attributes_of("w");
  ASSERT_EQ(of_w.size(), 2U);
  EXPECT_EQ(of_w[0].name, "alpha");
  EXPECT_EQ(std::get<double>(of_w[0].value), 0.5);
  EXPECT_TRUE(of_w[1].of_tensor);
  EXPECT_EQ(std::get<bool>(of_w[1].value), true);
  const auto of_mlp = all.attributes_of("mlp");
  ASSERT_EQ(of_mlp.size(), 2U);
  EXPECT_FALSE(of_mlp[0].of_tensor);
  EXPECT_EQ(std::get<std::string_view>(of_mlp[0].value), "gelu");
  EXPECT_THAT(std::get<std::span<const std::byte>>(of_mlp[1].value),
              ElementsAre(std::byte{9}, std::byte{9}, std::byte{9}));
  ASSERT_EQ(all.attributes_of("").size(), 1U);
  EXPECT_EQ(std::get<std::int64_t>(all.attributes_of("")[0].value), -7);
  EXPECT_TRUE(all.attributes_of("nowhere").empty());
}

TEST_F(ManifestTest, GivesIdentityAndProvenance) {
  const Manifest all = manifest();
  EXPECT_EQ(all.fingerprint_json(), *canonical_json(sample_fingerprint()));
  EXPECT_EQ(all.fingerprint(), *digest_of(sample_fingerprint()));
  const ProvenanceView from = all.provenance();
  EXPECT_EQ(from.publisher, "weightcache 0.1.0");
  EXPECT_EQ(from.source, "/models/m");
  EXPECT_EQ(from.command, "weightcache load");
  EXPECT_EQ(from.host, "host");
  EXPECT_EQ(from.published_unix_ns, 5);
  EXPECT_EQ(from.took_ns, 6);
}

TEST_F(ManifestTest, IsReadTheSameWithoutTheFullCheck) {
  const auto quick = Manifest::check(buffer_, {.full = false});
  ASSERT_TRUE(quick);
  EXPECT_EQ(quick->tensor_count(), manifest().tensor_count());
  EXPECT_EQ(Walk(*quick).run(), "");
}

TEST_F(ManifestTest, MayBeEmpty) {
  Builder builder;
  ASSERT_TRUE(builder.set_fingerprint(sample_fingerprint()));
  const auto bytes = builder.finish();
  ASSERT_TRUE(bytes);
  const auto empty = Manifest::check(*bytes);
  ASSERT_TRUE(empty) << empty.error().message;
  EXPECT_EQ(empty->tensor_count(), 0U);
  EXPECT_EQ(empty->find("w"), std::nullopt);
  EXPECT_TRUE(empty->segments().empty());
  EXPECT_TRUE(empty->attributes_of("").empty());
}

TEST_F(ManifestTest, RefusesAnAddressThatIsNotAligned) {
  std::vector<std::byte> shifted(buffer_.size() + 1);
  std::copy(buffer_.begin(), buffer_.end(), shifted.begin() + 1);
  const auto checked = Manifest::check(std::span(shifted).subspan(1));
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, Code::invalid_argument);
  EXPECT_THAT(checked.error().message, HasSubstr("multiple of 8"));
}

TEST_F(ManifestTest, RefusesWhatIsNoManifest) {
  for (const std::size_t size : std::initializer_list<std::size_t>{0, 1, 7, 8, 64, 4096}) {
    const auto checked = Manifest::check(std::vector<std::byte>(size));
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().code, Code::corrupt);
    EXPECT_THAT(checked.error().message, HasSubstr("no manifest"));
  }
}

}  // namespace
}  // namespace wc::manifest
