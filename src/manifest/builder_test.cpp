#include "manifest/builder.hpp"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "manifest/testing.hpp"

namespace wc::manifest {
namespace {

using testing::HasSubstr;

constexpr std::array<std::int64_t, 2> kMatrix = {2, 3};

class BuilderTest : public testing::Test {
 protected:
  BuilderTest() {
    EXPECT_TRUE(builder_.add_segment({.bytes = 4096, .used_bytes = 2048}));
    EXPECT_TRUE(builder_.add_file({.name = "a.safetensors", .bytes = 1000}));
    EXPECT_TRUE(builder_.set_fingerprint(sample_fingerprint()));
  }
  template <typename T>
  static void expect_invalid(const Result<T>& result, const char* message) {
    ASSERT_FALSE(result) << message;
    EXPECT_EQ(result.error().code, Code::invalid_argument);
    EXPECT_THAT(result.error().message, HasSubstr(message));
  }
  Builder builder_;
};

TEST_F(BuilderTest, RefusesTensorsThatNoReaderWouldAccept) {
  const std::array<std::int64_t, 1> negative = {-1};
  const std::array<std::int64_t, 2> huge = {std::int64_t{1} << 32, std::int64_t{1} << 32};
  const std::array<std::int64_t, 1> three = {3};
  const std::vector<std::int64_t> deep(65, 1);
  const std::string long_name(1025, 'x');
  const auto refused = [&](const TensorOptions& tensor, const char* message) {
    expect_invalid(builder_.add_tensor(tensor), message);
  };
  refused({.name = ""}, "a name of 0 bytes");
  refused({.name = long_name}, "a name of 1,025 bytes");
  refused({.name = "a\nb"}, "tensor \"a?b\"");
  refused({.name = "\xff"}, "no UTF-8");
  refused({.name = "w", .dtype = static_cast<Dtype>(99)}, "dtype 99 is unknown");
  refused({.name = "w", .shape = deep}, "65 dimensions, at most 64");
  refused({.name = "w", .shape = negative}, "a dimension is negative");
  refused({.name = "w", .shape = huge}, "does not fit in 63 bits");
  refused({.name = "w", .dtype = Dtype::f4, .shape = three}, "not a whole number of bytes");
  refused({.name = "w", .shape = kMatrix, .strides = three}, "1 strides for 2 dimensions");
  refused({.name = "w", .shape = three, .strides = negative}, "a stride is negative");
  refused({.name = "w", .segment = 1}, "segment 1 of 1");
  refused({.name = "w", .segment = 65536}, "segment 65536 of 1");
  refused({.name = "w", .offset = 2048}, "past the 2,048 used bytes of segment 0");
  refused({.name = "w", .dtype = Dtype::f32, .offset = 2}, "no multiple of the size of F32");
  refused({.name = "w", .file = 1}, "file 1 of 1");
  refused({.name = "w", .file = 0, .file_offset = 1000}, "past the 1,000 bytes of file 0");
  refused({.name = "w", .file_offset = 1}, "file 0 at offset 1");
  refused({.name = "w", .kind = static_cast<Kind>(2)}, "kind 2");
  const auto bytes = builder_.finish();
  ASSERT_TRUE(bytes) << "after errors the builder is as it was";
  EXPECT_EQ(Manifest::check(*bytes)->tensor_count(), 0U);
}

TEST_F(BuilderTest, RefusesANameTwiceWhereverItComes) {
  for (const char* name : {"b", "a", "c", "a"})
    ASSERT_TRUE(builder_.add_tensor({.name = name, .offset = 512}));
  expect_invalid(builder_.finish(), "tensor \"a\" was added twice");
}

TEST_F(BuilderTest, RefusesAnUnalignedTensorThatIsNoView) {
  ASSERT_TRUE(builder_.add_tensor({.name = "w", .shape = kMatrix, .offset = 512}));
  ASSERT_TRUE(builder_.add_tensor({.name = "inside", .offset = 517}));
  ASSERT_TRUE(builder_.finish());
  ASSERT_TRUE(builder_.add_tensor({.name = "said", .offset = 700, .view = true}));
  ASSERT_TRUE(builder_.finish());
  ASSERT_TRUE(builder_.add_tensor({.name = "outside", .offset = 518}));
  expect_invalid(builder_.finish(), "tensor \"outside\": offset 518 is no multiple of 512");
}

TEST_F(BuilderTest, WritesRowMajorStridesAsNone) {
  const std::array<std::int64_t, 2> row_major = {3, 1};
  const std::array<std::int64_t, 2> transposed = {1, 2};
  ASSERT_TRUE(builder_.add_tensor({.name = "a", .shape = kMatrix, .strides = row_major}));
  ASSERT_TRUE(builder_.add_tensor({.name = "b", .shape = kMatrix, .strides = transposed}));
  const auto bytes = builder_.finish();
  ASSERT_TRUE(bytes);
  const auto manifest = Manifest::check(*bytes);
  ASSERT_TRUE(manifest);
  EXPECT_TRUE(manifest->tensor(0).strides.empty());
  EXPECT_THAT(manifest->tensor(1).strides, testing::ElementsAre(1, 2));
}

TEST_F(BuilderTest, RefusesBadSegmentsAndFiles) {
  expect_invalid(builder_.add_segment({.bytes = 0}), "segment 1: 0 bytes");
  expect_invalid(builder_.add_segment({.bytes = 1, .used_bytes = 2}), "more is used");
  expect_invalid(builder_.add_segment({.bytes = 1, .digest = "md5"}), "no digest");
  expect_invalid(builder_.add_segment({.bytes = 1, .address = 5}), "no multiple of 4,096");
  expect_invalid(builder_.add_file({.name = ""}), "a name of 0 bytes");
  expect_invalid(builder_.add_file({.name = "a.safetensors"}), "was added before");
  expect_invalid(builder_.add_file({.name = "b", .digest = "x"}), "no digest");
  expect_invalid(builder_.set_segment_digest(1, kSampleDigest), "segment 1 of 1");
  expect_invalid(builder_.set_segment_digest(0, "x"), "no digest");
  for (std::uint32_t count = 1; count < kMaxSegments; ++count)
    ASSERT_TRUE(builder_.add_segment({.bytes = 1}));
  expect_invalid(builder_.add_segment({.bytes = 1}), "at most 240 segments");
}

TEST_F(BuilderTest, RefusesOverlappingFixedAddresses) {
  ASSERT_TRUE(builder_.add_segment({.bytes = 8192, .address = 0x10000}));
  ASSERT_TRUE(builder_.add_segment({.bytes = 4096, .address = 0x12000}));
  ASSERT_TRUE(builder_.finish());
  ASSERT_TRUE(builder_.add_segment({.bytes = 1, .address = 0x11000}));
  expect_invalid(builder_.finish(), "overlap");
}

TEST_F(BuilderTest, RefusesBadAttributes) {
  const auto set = [&](const AttributeOptions& attribute) {
    return builder_.set_attribute(attribute);
  };
  expect_invalid(set({.path = "m", .name = "", .value = true}), "a name of 0 bytes");
  expect_invalid(set({.path = "m\n", .name = "a", .value = true}), "a path of 2 bytes");
  expect_invalid(set({.path = "m", .name = "a", .value = std::string("\xff")}), "no UTF-8");
  expect_invalid(set({.path = "m", .name = "a", .value = std::vector<std::byte>((16 << 20) + 1)}),
                 "at most 16.0 MiB");
  ASSERT_TRUE(set({.path = "m", .name = "a", .value = true}));
  expect_invalid(set({.path = "m", .name = "a", .value = 1.0}), "was set before");
  ASSERT_TRUE(set({.path = "m", .name = "a", .of_tensor = true, .value = true}));
  expect_invalid(builder_.finish(), "attribute \"a\" of tensor \"m\": there is no such tensor");
}

TEST_F(BuilderTest, WantsAFingerprint) {
  Builder builder;
  expect_invalid(builder.finish(), "no fingerprint");
  expect_invalid(builder.set_fingerprint({}), "source");
}

TEST_F(BuilderTest, MendsTextsForPeople) {
  builder_.set_provenance({.publisher = "p\xff", .command = std::string(10000, 'c')});
  const auto bytes = builder_.finish();
  ASSERT_TRUE(bytes);
  const auto manifest = Manifest::check(*bytes);
  ASSERT_TRUE(manifest) << manifest.error().message;
  EXPECT_EQ(manifest->provenance().publisher, "p\xef\xbf\xbd");
  EXPECT_EQ(manifest->provenance().command.size(), 4096U);
}

TEST_F(BuilderTest, StoresEqualShapesOnce) {
  const auto size_with = [](int tensors) {
    Builder builder;
    EXPECT_TRUE(builder.add_segment({.bytes = 4096, .used_bytes = 4096}));
    EXPECT_TRUE(builder.set_fingerprint(sample_fingerprint()));
    for (int at = 0; at < tensors; ++at)
      EXPECT_TRUE(builder.add_tensor({.name = std::to_string(1000 + at), .shape = kMatrix}));
    return builder.finish()->size();
  };
  EXPECT_EQ(size_with(300) - size_with(200), 100 * (56 + 4 + 4));
}

// Whatever it is given at random, it refuses, or writes what passes the full check.
TEST_F(BuilderTest, WritesOnlyWhatPassesTheFullCheck) {
  const unsigned seed = 99;
  std::mt19937_64 random(seed);
  int written = 0;
  for (int round = 0; round < 3000; ++round) {
    Builder builder;
    EXPECT_TRUE(builder.set_fingerprint(sample_fingerprint()));
    EXPECT_TRUE(builder.add_segment({.bytes = 4096, .used_bytes = random() % 4097}));
    EXPECT_TRUE(builder.add_file({.name = "f", .bytes = 4096}));
    std::uint32_t added = 0;
    for (auto count = random() % 6; count > 0; --count) {
      std::vector<std::int64_t> shape(random() % 4);
      std::vector<std::int64_t> strides(random() % 3 == 0 ? shape.size() : 0);
      for (auto& size : shape) size = static_cast<std::int64_t>(random() % 6);
      for (auto& stride : strides) stride = static_cast<std::int64_t>(random() % 40);
      const std::string name = std::to_string(random() % 20);
      TensorOptions tensor{.name = name,
                           .dtype = static_cast<Dtype>(random() % 24),
                           .shape = shape,
                           .strides = strides,
                           .offset = random() % 9 * 512 + random() % 4 / 3 * 8,
                           .view = random() % 5 == 0};
      if (random() % 4 == 0) tensor.file = static_cast<std::uint32_t>(random() % 2);
      if (tensor.file) tensor.file_offset = random() % 5000;
      added += builder.add_tensor(tensor).has_value() ? 1 : 0;
    }
    const auto bytes = builder.finish();
    if (!bytes) continue;
    ++written;
    const auto manifest = Manifest::check(*bytes);
    ASSERT_TRUE(manifest) << manifest.error().message << ", seed " << seed << ", round " << round;
    ASSERT_EQ(manifest->tensor_count(), added);
    ASSERT_EQ(Walk(*manifest).run(), "");
  }
  EXPECT_GT(written, 1000);
}

}  // namespace
}  // namespace wc::manifest
