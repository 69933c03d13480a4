// Manifests that a publisher forged, field by field, and ones that rotted, bit by bit.
#include <functional>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "manifest/records.hpp"
#include "manifest/testing.hpp"

namespace wc::manifest {
namespace {

using testing::HasSubstr;

// A record's fields, to be set one by one.
struct Fields {
  std::uint64_t offset, bytes;
  std::uint32_t name_at, name_bytes, module_at, shape_at, strides_at;
  std::uint16_t segment;
  std::uint8_t rank, dtype, kind, flags;
  std::uint16_t reserved;
  std::uint32_t file;
  std::uint64_t file_offset;
};

using Change = std::function<void(fb::ManifestT&)>;

Change tensor(std::size_t index, const std::function<void(Fields&)>& change) {
  return [=](fb::ManifestT& manifest) {
    const fb::TensorRecord& r = manifest.tensors.at(index);
    Fields f{r.offset(),   r.bytes(),      r.name_at(),    r.name_bytes(), r.module_at(),
             r.shape_at(), r.strides_at(), r.segment(),    r.rank(),       r.dtype(),
             r.kind(),     r.flags(),      r.reserved_0(), r.file(),       r.file_offset()};
    change(f);
    manifest.tensors[index] = {f.offset,   f.bytes,      f.name_at,  f.name_bytes, f.module_at,
                               f.shape_at, f.strides_at, f.segment,  f.rank,       f.dtype,
                               f.kind,     f.flags,      f.reserved, f.file,       f.file_offset};
  };
}

enum class Who : std::uint8_t { everybody, full_only };

struct Case {
  const char* name;
  Change change;
  const char* message;
  Who refuses = Who::everybody;
};

class HostileManifestTest : public testing::Test {
 protected:
  HostileManifestTest() : good_(*sample_builder().finish()) {}

  std::vector<std::byte> changed(const Change& change) const {
    const auto manifest = fb::UnPackManifest(good_.data());
    change(*manifest);
    flatbuffers::FlatBufferBuilder to;
    fb::FinishManifestBuffer(to, fb::Manifest::Pack(to, manifest.get()));
    const auto* bytes = reinterpret_cast<const std::byte*>(to.GetBufferPointer());
    return {bytes, bytes + to.GetSize()};
  }

  void expect_refused(const Case& forged) const {
    SCOPED_TRACE(forged.name);
    const auto bytes = changed(forged.change);
    const auto full = Manifest::check(bytes);
    ASSERT_FALSE(full);
    EXPECT_EQ(full.error().code, Code::corrupt);
    EXPECT_THAT(full.error().message, HasSubstr(forged.message));
    EXPECT_TRUE(full.error().message.starts_with("manifest: "));
    const auto quick = Manifest::check(bytes, {.full = false});
    EXPECT_EQ(quick.has_value(), forged.refuses == Who::full_only);
    if (quick) {
      EXPECT_EQ(Walk(*quick).run(), "");
    }
  }

  // Everything holds: a change is not refused for a reason of the test's own making.
  void expect_accepted(const Change& change) const {
    const auto bytes = changed(change);
    const auto full = Manifest::check(bytes);
    ASSERT_TRUE(full) << full.error().message;
    EXPECT_EQ(Walk(*full).run(), "");
  }

  std::vector<std::byte> good_;
};

TEST_F(HostileManifestTest, AnUnchangedOnePasses) {
  expect_accepted([](fb::ManifestT&) {});
}

TEST_F(HostileManifestTest, EveryIndexOfARecordIsRefusedOutOfItsPool) {
  const std::vector<Case> cases = {
      {"segment", tensor(0, [](Fields& f) { f.segment = 2; }), "tensor \"w\": segment 2 of 2"},
      {"segment, far", tensor(0, [](Fields& f) { f.segment = 0xffff; }), "segment 65535 of 2"},
      {"dtype 0", tensor(0, [](Fields& f) { f.dtype = 0; }), "dtype 0 is unknown"},
      {"dtype 23", tensor(0, [](Fields& f) { f.dtype = 23; }), "dtype 23 is unknown"},
      {"dtype 255", tensor(0, [](Fields& f) { f.dtype = 255; }), "dtype 255 is unknown"},
      {"rank", tensor(0, [](Fields& f) { f.rank = 65; }), "65 dimensions, at most 64"},
      {"rank, in limits", tensor(0, [](Fields& f) { f.rank = 64; }), "are past the pool's"},
      {"shape_at", tensor(0, [](Fields& f) { f.shape_at = 1000; }), "2 dimensions from 1,000"},
      {"shape_at, far", tensor(0, [](Fields& f) { f.shape_at = 0xffffffff; }), "past the pool's"},
      {"strides_at", tensor(0, [](Fields& f) { f.strides_at = 1000; }), "2 strides from 1,000"},
      {"strides_at, far", tensor(0, [](Fields& f) { f.strides_at = 0xfffffffe; }), "strides from"},
      {"name_at", tensor(0, [](Fields& f) { f.name_at = 0xffffffff; }), "1 bytes of name from"},
      {"name past the end", tensor(0, [](Fields& f) { f.name_bytes = 1000; }),
       "1,000 bytes of name"},
      {"no name", tensor(0, [](Fields& f) { f.name_bytes = 0; }), "a name of 0 bytes"},
      {"kind", tensor(0, [](Fields& f) { f.kind = 2; }), "kind 2"},
      {"flags", tensor(0, [](Fields& f) { f.flags = 8; }), "flags 0x8"},
      {"reserved", tensor(0, [](Fields& f) { f.reserved = 1; }), "reserved fields 0 and 1"},
      {"module", tensor(0, [](Fields& f) { f.module_at = 1; }), "reserved fields 1 and 0"},
      {"file", tensor(0, [](Fields& f) { f.file = 2; }), "file 2 at offset 100, of 1 files"},
      {"file, far", tensor(0, [](Fields& f) { f.file = 0xffffffff; }), "of 1 files"},
      {"an offset without a file", tensor(0, [](Fields& f) { f.file = 0; }),
       "file 0 at offset 100"},
  };
  for (const Case& forged : cases) expect_refused(forged);
}

TEST_F(HostileManifestTest, EveryRangeOfARecordIsRefusedOutsideItsSegmentOrFile) {
  const std::uint64_t far = ~std::uint64_t{0};
  const std::vector<Case> cases = {
      {"bytes", tensor(0, [](Fields& f) { f.bytes = 25; }), "takes 24 bytes, the record says 25"},
      {"fewer bytes", tensor(0, [](Fields& f) { f.bytes = 0; }),
       "takes 24 bytes, the record says 0"},
      {"view's bytes", tensor(1, [](Fields& f) { f.bytes = 8; }),
       "takes 16 bytes, the record says 8"},
      {"offset", tensor(0, [](Fields& f) { f.offset = 2980; }),
       "past the 3,000 used bytes of segment 0"},
      {"offset, far", tensor(0, [=](Fields& f) { f.offset = far - 7; }),
       "past the 3,000 used bytes"},
      {"in memory, not in use", tensor(0, [](Fields& f) { f.offset = 3072; }), "past the 3,000"},
      {"empty past the end", tensor(4, [](Fields& f) { f.offset = 8193; }), "past the 8,192"},
      {"between elements", tensor(0, [](Fields& f) { f.offset = 514; }),
       "no multiple of the size of F32"},
      {"file's end", tensor(0, [](Fields& f) { f.file_offset = 65513; }),
       "past the 65,536 bytes of file 0"},
      {"file, far", tensor(0, [=](Fields& f) { f.file_offset = far; }),
       "past the 65,536 bytes of file 0"},
  };
  for (const Case& forged : cases) expect_refused(forged);
  expect_accepted(tensor(0, [](Fields& f) { f.file_offset = 65512; }));
}

// Puts these integers into the pool and points a tensor at them.
Change shaped(std::vector<std::int64_t> shape, std::vector<std::int64_t> strides,
              std::uint64_t bytes, Dtype dtype = Dtype::f32) {
  return [=](fb::ManifestT& manifest) {
    const auto at = static_cast<std::uint32_t>(manifest.integers.size());
    manifest.integers.insert(manifest.integers.end(), shape.begin(), shape.end());
    manifest.integers.insert(manifest.integers.end(), strides.begin(), strides.end());
    tensor(2, [&](Fields& f) {
      f.shape_at = at;
      f.rank = static_cast<std::uint8_t>(shape.size());
      f.strides_at = strides.empty() ? kContiguous : at + f.rank;
      f.bytes = bytes;
      f.dtype = static_cast<std::uint8_t>(dtype);
    })(manifest);
  };
}

TEST_F(HostileManifestTest, ShapesThatWrapAreRefused) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kHalf = std::int64_t{1} << 32;
  const std::vector<Case> cases = {
      {"negative", shaped({-1}, {}, 0), "a dimension is negative"},
      {"two negative", shaped({-2, -3}, {}, 24), "a dimension is negative"},
      {"negative and zero", shaped({0, -1}, {}, 0), "a dimension is negative"},
      {"wraps to zero", shaped({kHalf, kHalf}, {}, 0), "does not fit in 63 bits"},
      {"wraps to zero, with a zero", shaped({0, kHalf, kHalf}, {}, 0), "does not fit in 63 bits"},
      {"bits wrap", shaped({std::int64_t{1} << 62}, {}, 0), "does not fit in 63 bits"},
      {"most", shaped({kMost}, {}, 24), "does not fit in 63 bits"},
      {"all there is", shaped({std::int64_t{1} << 40}, {}, std::uint64_t{1} << 42),
       "past the 3,000"},
      {"stride", shaped({2, 2}, {-1, 1}, 8), "a stride is negative"},
      {"stride wraps", shaped({3, 3}, {kMost / 2, kMost / 2}, 8), "does not fit in 63 bits"},
      {"stride, bytes wrap", shaped({2}, {kMost / 2}, 8), "does not fit in 63 bits"},
      {"stride past the end", shaped({2}, {1000}, 4004), "past the 3,000"},
      {"half a byte", shaped({3}, {}, 1, Dtype::f4), "not a whole number of bytes"},
      {"4-bit strides", shaped({2}, {2}, 1, Dtype::f4), "less than a byte have no strides"},
  };
  for (const Case& forged : cases) expect_refused(forged);
}

TEST_F(HostileManifestTest, ShapesThatAreOddButRightAreAccepted) {
  expect_accepted(shaped({5, 0, 7}, {}, 0));
  expect_accepted(shaped({5, 0, 7}, {1000000, 1000000, 1000000}, 0));
  expect_accepted(shaped({1000}, {0}, 4));
  expect_accepted(shaped(std::vector<std::int64_t>(64, 1), {}, 4));
  expect_accepted(shaped({3, 2}, {1, 3}, 24));
  expect_accepted(shaped({4}, {}, 3, Dtype::f6_e2m3));
  expect_accepted(tensor(0, [](Fields& f) {
    f.offset = 516;
    f.flags |= kFlagView;
  }));
}

Change root(const std::function<void(fb::ManifestT&)>& change) { return change; }

TEST_F(HostileManifestTest, SegmentsAreBounded) {
  const auto segment = [](const std::function<void(fb::SegmentT&)>& change) {
    return root([=](fb::ManifestT& m) { change(*m.segments[0]); });
  };
  const std::vector<Case> cases = {
      {"empty", segment([](auto& s) { s.bytes = 0; }), "segment 0: 0 bytes"},
      {"used", segment([](auto& s) { s.used_bytes = 4097; }), "more is used than there is"},
      {"large", segment([](auto& s) { s.bytes = ~0ULL; }), "more than 1.0 PiB"},
      {"address", segment([](auto& s) { s.address = 4097; }), "no multiple of 4,096"},
      {"address, far", segment([](auto& s) { s.address = ~0ULL << 12; }), "ends past 2^57"},
      {"digest", segment([](auto& s) { s.digest = "xxh3t-4m:XY"; }), "is no digest",
       Who::full_only},
      {"overlap", root([](fb::ManifestT& m) { m.segments[1]->address = 0x200000000 - 4096; }),
       "overlap", Who::full_only},
      {"too many", root([](fb::ManifestT& m) {
         while (m.segments.size() <= kMaxSegments) {
           m.segments.emplace_back(new fb::SegmentT);
           m.segments.back()->bytes = 4096;
         }
       }),
       "241 segments, at most 240"},
      {"none", root([](fb::ManifestT& m) { m.segments.clear(); }), "segment 0 of 0"},
  };
  for (const Case& forged : cases) expect_refused(forged);
}

TEST_F(HostileManifestTest, NamesAreUniqueOrderedAndText) {
  const auto name = [](std::size_t at, char byte) {
    return root([=](fb::ManifestT& m) { m.text.at(at) = byte; });
  };
  const std::vector<Case> cases = {
      {"not UTF-8", name(0, '\xff'), "no UTF-8", Who::full_only},
      {"a control character", name(0, '\n'), "a control character", Who::full_only},
      {"NUL", name(0, '\0'), "a control character", Who::full_only},
      {"a name twice", tensor(1, [](Fields& f) { f.name_bytes = 1; }), "the order of names",
       Who::full_only},
      {"an index twice", root([](fb::ManifestT& m) { m.by_name[1] = m.by_name[0]; }),
       "the order of names", Who::full_only},
      {"another order", root([](fb::ManifestT& m) { std::swap(m.by_name[1], m.by_name[0]); }),
       "comes before", Who::full_only},
      {"an index too large", root([](fb::ManifestT& m) { m.by_name[3] = 7; }), "tensor 7 of 7"},
      {"one more", root([](fb::ManifestT& m) { m.by_name.push_back(0); }),
       "8 in the order of names"},
      {"none", root([](fb::ManifestT& m) { m.by_name.clear(); }), "0 in the order of names"},
      {"no text", root([](fb::ManifestT& m) { m.text.clear(); }), "bytes of name"},
      {"no integers", root([](fb::ManifestT& m) { m.integers.clear(); }), "past the pool's 0"},
  };
  for (const Case& forged : cases) expect_refused(forged);
}

TEST_F(HostileManifestTest, AlignmentIsForWhatIsNoView) {
  const std::vector<Case> cases = {
      {"unaligned", tensor(3, [](Fields& f) { f.offset = 1032; }), "no multiple of 512",
       Who::full_only},
      {"at the end of another", tensor(1, [](Fields& f) { f.offset = 536; }), "no multiple of 512",
       Who::full_only},
      {"no view any more", tensor(5, [](Fields& f) { f.flags = 1; }), "it is a view",
       Who::full_only},
      {"in another segment", tensor(1, [](Fields& f) { f.segment = 1; }), "no multiple of 512",
       Who::full_only},
  };
  for (const Case& forged : cases) expect_refused(forged);
  expect_accepted(tensor(1, [](Fields& f) { f.offset = 532; }));  // its last element
}

TEST_F(HostileManifestTest, FilesAttributesAndProvenanceAreBounded) {
  const auto attribute = [](std::size_t at, const std::function<void(fb::AttributeT&)>& change) {
    return root([=](fb::ManifestT& m) { change(*m.attributes.at(at)); });
  };
  const std::vector<Case> cases = {
      {"file's name", root([](fb::ManifestT& m) { m.files[0]->name = "a\nb"; }), "file \"a?b\"",
       Who::full_only},
      {"no name", root([](fb::ManifestT& m) { m.files[0]->name.clear(); }), "a name of 0 bytes",
       Who::full_only},
      {"digest", root([](fb::ManifestT& m) { m.files[0]->digest = "sha"; }), "no digest",
       Who::full_only},
      {"file twice", root([](fb::ManifestT& m) {
         m.files.emplace_back(new fb::FileT);
         m.files.back()->name = m.files[0]->name;
       }),
       "listed twice", Who::full_only},
      {"no value", attribute(0, [](auto& a) { a.value.Reset(); }),
       "attribute 0: a value of type 0"},
      {"path", attribute(0, [](auto& a) { a.path.assign(1025, 'x'); }), "1,025 bytes",
       Who::full_only},
      {"name", attribute(0, [](auto& a) { a.name.clear(); }), "a name of 0 bytes", Who::full_only},
      {"long name", attribute(0, [](auto& a) { a.name.assign(257, 'x'); }), "257 bytes",
       Who::full_only},
      {"text", attribute(1, [](auto& a) { a.value.AsText()->value = "\xc0"; }), "no UTF-8",
       Who::full_only},
      {"large", attribute(2, [](auto& a) { a.value.AsBytes()->value.resize((16 << 20) + 1); }),
       "at most 16.0 MiB", Who::full_only},
      {"unknown tensor", attribute(4, [](auto& a) { a.path = "wx"; }), "no such tensor",
       Who::full_only},
      {"order", root([](fb::ManifestT& m) { std::swap(m.attributes[0], m.attributes[1]); }),
       "not in ascending order", Who::full_only},
      {"twice", attribute(2, [](auto& a) { a.name = "act"; }), "not in ascending order",
       Who::full_only},
      {"provenance", root([](fb::ManifestT& m) { m.provenance->command.assign(4097, 'x'); }),
       "more than 4,096 bytes", Who::full_only},
      {"host", root([](fb::ManifestT& m) { m.provenance->host = "\x80"; }), "no UTF-8",
       Who::full_only},
  };
  for (const Case& forged : cases) expect_refused(forged);
}

TEST_F(HostileManifestTest, IdentityIsItsDocuments) {
  const std::vector<Case> cases = {
      {"short", root([](fb::ManifestT& m) { m.fingerprint.pop_back(); }), "32 hexadecimal digits"},
      {"no digit", root([](fb::ManifestT& m) { m.fingerprint[5] = 'G'; }), "32 hexadecimal digits"},
      {"absent", root([](fb::ManifestT& m) { m.fingerprint.clear(); }), "32 hexadecimal digits"},
      {"other", root([](fb::ManifestT& m) { m.fingerprint = std::string(32, '0'); }),
       "its document's is", Who::full_only},
      {"spelling", root([](fb::ManifestT& m) { m.fingerprint_json += " "; }),
       "not its canonical form", Who::full_only},
      {"no document", root([](fb::ManifestT& m) { m.fingerprint_json.clear(); }), "no valid JSON",
       Who::full_only},
      {"no fingerprint", root([](fb::ManifestT& m) { m.fingerprint_json = "{}"; }),
       "needs either shards or a source_id", Who::full_only},
  };
  for (const Case& forged : cases) expect_refused(forged);
}

// Whoever accepts it must be able to follow everything in it.
void expect_refused_or_in_bounds(std::span<const std::byte> bytes) {
  const auto copy = exact_copy(bytes);
  for (const bool full : {false, true}) {
    const auto checked = Manifest::check(copy, {.full = full});
    if (checked) {
      ASSERT_EQ(Walk(*checked).run(), "");
    } else {
      ASSERT_EQ(checked.error().code, Code::corrupt);
    }
  }
}

TEST_F(HostileManifestTest, CutAtEveryLengthItIsRefused) {
  for (std::size_t size = 0; size < good_.size(); ++size) {
    const auto cut = exact_copy(std::span(good_).first(size));
    const bool padding = good_.size() - size < 8;  // to the alignment, behind the last text
    if (!padding) {
      ASSERT_FALSE(Manifest::check(cut)) << size;
    }
    expect_refused_or_in_bounds(cut);
  }
}

TEST_F(HostileManifestTest, WithAnyBitFlippedItIsRefusedOrInBounds) {
  auto flipped = good_;
  for (std::size_t at = 0; at < good_.size() * 8; ++at) {
    flipped[at / 8] ^= std::byte{1} << static_cast<int>(at % 8);
    SCOPED_TRACE(at);
    expect_refused_or_in_bounds(flipped);
    flipped[at / 8] = good_[at / 8];
  }
}

TEST_F(HostileManifestTest, WithWordsReplacedItIsRefusedOrInBounds) {
  const unsigned seed = 20240607;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  const std::uint64_t extremes[] = {0,          1,      0x7f,       0x80,
                                    0xff,       0x7fff, 0x7fffffff, 0x80000000,
                                    0xffffffff, ~0ULL,  1ULL << 63, (1ULL << 63) - 1};
  for (int round = 0; round < 20000; ++round) {
    auto changed = good_;
    for (auto changes = 1 + random() % 3; changes > 0; --changes) {
      const std::uint64_t word = random() % 2 == 0 ? extremes[random() % 12] : random();
      const std::size_t width = std::size_t{1} << random() % 4;
      const std::size_t at = random() % (changed.size() / width) * width;
      std::memcpy(changed.data() + at, &word, width);
    }
    expect_refused_or_in_bounds(changed);
  }
}

}  // namespace
}  // namespace wc::manifest
