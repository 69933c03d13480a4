// Reads a manifest's bytes as docs/MANIFEST.md describes them, without FlatBuffers: what a reader
// in another language relies on.
#include <cstring>

#include <gtest/gtest.h>

#include "manifest/testing.hpp"

namespace wc::manifest {
namespace {

class Bytes {
 public:
  explicit Bytes(const std::vector<std::byte>& bytes) : bytes_(bytes) {}
  template <typename T>
  [[nodiscard]] T at(std::size_t place) const {
    T value{};
    EXPECT_LE(place + sizeof(T), bytes_.size());
    std::memcpy(&value, bytes_.data() + place, sizeof(T));
    return value;
  }
  /// Where the field with this number of the table at `table` stands; 0: absent.
  [[nodiscard]] std::size_t field(std::size_t table, unsigned number) const {
    const std::size_t vtable = table - static_cast<std::size_t>(at<std::int32_t>(table));
    const std::size_t slot = 4 + 2 * std::size_t{number};
    if (slot >= at<std::uint16_t>(vtable)) return 0;
    const auto offset = at<std::uint16_t>(vtable + slot);
    return offset == 0 ? 0 : table + offset;
  }
  /// What a field that is an offset leads to: a vector, a text or a table.
  [[nodiscard]] std::size_t follow(std::size_t place) const {
    return place + at<std::uint32_t>(place);
  }
  [[nodiscard]] std::string text(std::size_t place) const {
    return {reinterpret_cast<const char*>(bytes_.data()) + place + 4, at<std::uint32_t>(place)};
  }

 private:
  const std::vector<std::byte>& bytes_;
};

class FormatTest : public testing::Test {
 protected:
  [[nodiscard]] std::size_t member(unsigned number) const {
    return bytes_.follow(bytes_.field(root_, number));
  }
  const std::vector<std::byte> buffer_ = *sample_builder().finish();
  const Bytes bytes_{buffer_};
  const std::size_t root_ = bytes_.follow(0);
};

TEST_F(FormatTest, StartsWithTheRootsOffsetAndTheIdentifier) {
  EXPECT_EQ(std::memcmp(buffer_.data() + 4, "WCM1", 4), 0);
  EXPECT_EQ(buffer_.size() % 8, 0U);
}

TEST_F(FormatTest, TheRootsFieldsHaveTheirNumbers) {
  EXPECT_EQ(bytes_.text(member(0)), *digest_of(sample_fingerprint()));
  EXPECT_EQ(bytes_.text(member(1)), *canonical_json(sample_fingerprint()));
  EXPECT_EQ(bytes_.at<std::uint32_t>(member(2)), 7U);  // tensors
  EXPECT_EQ(bytes_.at<std::uint32_t>(member(3)), 7U);  // by_name
  EXPECT_EQ(bytes_.text(member(4)), "ww.vieww.tiedscaleemptyslicepacked");
  EXPECT_GE(bytes_.at<std::uint32_t>(member(5)), 4U);  // integers
  EXPECT_EQ(bytes_.at<std::uint32_t>(member(6)), 2U);  // segments
  EXPECT_EQ(bytes_.at<std::uint32_t>(member(7)), 1U);  // files
  EXPECT_EQ(bytes_.at<std::uint32_t>(member(8)), 5U);  // attributes
  EXPECT_EQ(bytes_.text(bytes_.follow(bytes_.field(member(9), 0))), "weightcache 0.1.0");
}

TEST_F(FormatTest, ARecordHas56BytesInThisOrder) {
  const std::size_t records = member(2) + 4;
  EXPECT_EQ(records % 8, 0U);
  const std::size_t w = records;
  EXPECT_EQ(bytes_.at<std::uint64_t>(w + 0), 512U);          // offset
  EXPECT_EQ(bytes_.at<std::uint64_t>(w + 8), 24U);           // bytes
  EXPECT_EQ(bytes_.at<std::uint32_t>(w + 16), 0U);           // name_at
  EXPECT_EQ(bytes_.at<std::uint32_t>(w + 20), 1U);           // name_bytes
  EXPECT_EQ(bytes_.at<std::uint32_t>(w + 24), 0U);           // module_at
  EXPECT_EQ(bytes_.at<std::uint32_t>(w + 32), 0xffffffffU);  // strides_at
  EXPECT_EQ(bytes_.at<std::uint16_t>(w + 36), 0U);           // segment
  EXPECT_EQ(bytes_.at<std::uint8_t>(w + 38), 2U);            // rank
  EXPECT_EQ(bytes_.at<std::uint8_t>(w + 39), 18U);           // dtype F32
  EXPECT_EQ(bytes_.at<std::uint8_t>(w + 40), 0U);            // kind
  EXPECT_EQ(bytes_.at<std::uint8_t>(w + 41), 1U);            // flags
  EXPECT_EQ(bytes_.at<std::uint16_t>(w + 42), 0U);           // reserved
  EXPECT_EQ(bytes_.at<std::uint32_t>(w + 44), 1U);           // file + 1
  EXPECT_EQ(bytes_.at<std::uint64_t>(w + 48), 100U);         // file_offset
  const std::size_t shape = member(5) + 4 + 8 * std::size_t{bytes_.at<std::uint32_t>(w + 28)};
  EXPECT_EQ(bytes_.at<std::int64_t>(shape), 2);
  EXPECT_EQ(bytes_.at<std::int64_t>(shape + 8), 3);
  const std::size_t view = records + 56;
  EXPECT_EQ(bytes_.at<std::uint64_t>(view + 0), 516U);
  EXPECT_EQ(bytes_.at<std::uint32_t>(view + 20), 6U);
  const std::size_t strides = member(5) + 4 + 8 * std::size_t{bytes_.at<std::uint32_t>(view + 32)};
  EXPECT_EQ(bytes_.at<std::int64_t>(strides), 3);
  EXPECT_EQ(bytes_.at<std::uint8_t>(records + 5 * 56 + 41), 5U);  // persistent, view
}

TEST_F(FormatTest, SegmentsFilesAndAttributesHaveTheirNumbers) {
  const auto entry = [&](unsigned number, std::size_t index) {
    return bytes_.follow(member(number) + 4 + 4 * index);
  };
  const std::size_t segment = entry(6, 0);
  EXPECT_EQ(bytes_.at<std::uint64_t>(bytes_.field(segment, 0)), 4096U);
  EXPECT_EQ(bytes_.at<std::uint64_t>(bytes_.field(segment, 1)), 3000U);
  EXPECT_EQ(bytes_.text(bytes_.follow(bytes_.field(segment, 2))), kSampleDigest);
  EXPECT_EQ(bytes_.at<std::uint64_t>(bytes_.field(segment, 3)), 0x200000000U);
  EXPECT_EQ(bytes_.at<std::uint64_t>(bytes_.field(segment, 4)), 1U);
  const std::size_t file = entry(7, 0);
  EXPECT_EQ(bytes_.text(bytes_.follow(bytes_.field(file, 0))), "model.safetensors");
  EXPECT_EQ(bytes_.at<std::uint64_t>(bytes_.field(file, 1)), 65536U);
  EXPECT_EQ(bytes_.at<std::int64_t>(bytes_.field(file, 6)), 4);
  const std::size_t attribute = entry(8, 3);  // "w", "alpha"
  EXPECT_EQ(bytes_.text(bytes_.follow(bytes_.field(attribute, 0))), "w");
  EXPECT_EQ(bytes_.text(bytes_.follow(bytes_.field(attribute, 1))), "alpha");
  EXPECT_EQ(bytes_.at<std::uint8_t>(bytes_.field(attribute, 2)), 1U);  // of_tensor
  EXPECT_EQ(bytes_.at<std::uint8_t>(bytes_.field(attribute, 3)), 3U);  // Float
  const std::size_t value = bytes_.follow(bytes_.field(attribute, 4));
  EXPECT_EQ(bytes_.at<double>(bytes_.field(value, 0)), 0.5);
}

}  // namespace
}  // namespace wc::manifest
