#include "manifest/check.hpp"

#include <algorithm>
#include <array>

#include "base/units.hpp"
#include "manifest/text.hpp"

namespace wc::manifest {
namespace {

constexpr std::uint64_t kBufferAlignment = 8;
// What a manifest without attributes, segments and files has, and tables in tables: far below.
constexpr flatbuffers::uoffset_t kMaxTables = 16 + kMaxSegments + kMaxFiles + 2 * kMaxAttributes;
constexpr flatbuffers::uoffset_t kMaxTableDepth = 8;

// The bytes of each segment and file, beside each other, so that the walk over the records does
// not jump between tables.
struct Sizes {
  std::array<std::uint64_t, kMaxSegments> segment_used_bytes{};
  std::vector<std::uint64_t> file_bytes;
};

Result<> check_envelope(std::span<const std::byte> buffer) {
  const auto address = std::bit_cast<std::uintptr_t>(buffer.data());
  if (address % kBufferAlignment != 0) {
    return fail(Code::invalid_argument, "the manifest's address is no multiple of {} bytes",
                kBufferAlignment);
  }
  if (buffer.size() > kMaxManifestBytes) {
    return fail(Code::corrupt, "a manifest of {}, at most {}", format_bytes(buffer.size()),
                format_bytes(kMaxManifestBytes));
  }
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(buffer.data());
  if (buffer.size() < 2 * sizeof(flatbuffers::uoffset_t) ||
      !fb::ManifestBufferHasIdentifier(bytes)) {
    return fail(Code::corrupt, "{} bytes that are no manifest: the identifier is not \"{}\"",
                format_count(buffer.size()), fb::ManifestIdentifier());
  }
  flatbuffers::Verifier::Options options;
  options.max_depth = kMaxTableDepth;
  options.max_tables = kMaxTables;
  flatbuffers::Verifier verifier(bytes, buffer.size(), options);
  if (!fb::VerifyManifestBuffer(verifier)) {
    return fail(Code::corrupt,
                "a manifest of {} bytes: a table, vector or text is out of bounds, not aligned, or "
                "not ended",
                format_count(buffer.size()));
  }
  return {};
}

template <typename Vector>
std::uint32_t size_of(const Vector* vector) {
  return vector == nullptr ? 0 : vector->size();
}

Result<> check_counts(const fb::Manifest& root) {
  struct Count {
    const char* what;
    std::uint32_t count;
    std::uint32_t limit;
  };
  const std::array<Count, 4> counts = {
      {{"tensors", size_of(root.tensors()), kMaxTensors},
       {"segments", size_of(root.segments()), kMaxSegments},
       {"files", size_of(root.files()), kMaxFiles},
       {"attributes", size_of(root.attributes()), kMaxAttributes}}};
  for (const Count& count : counts) {
    if (count.count > count.limit) {
      return fail(Code::corrupt, "{} {}, at most {}", format_count(count.count), count.what,
                  format_count(count.limit));
    }
  }
  if (size_of(root.by_name()) != size_of(root.tensors())) {
    return fail(Code::corrupt, "{} tensors, but {} in the order of names",
                format_count(size_of(root.tensors())), format_count(size_of(root.by_name())));
  }
  return {};
}

// FlatBuffers' verifier looks at the alignment of a vector's length, not of its elements.
Result<> check_vector_alignment(const fb::Manifest& root) {
  const auto off = [](const void* data) {
    return std::bit_cast<std::uintptr_t>(data) % kBufferAlignment != 0;
  };
  if (size_of(root.tensors()) != 0 && off(root.tensors()->Data()))
    return fail(Code::corrupt, "the tensors' records do not start on a multiple of 8 bytes");
  if (size_of(root.integers()) != 0 && off(root.integers()->Data()))
    return fail(Code::corrupt, "the pool of integers does not start on a multiple of 8 bytes");
  return {};
}

Result<> check_records(const Pools& pools, std::span<const fb::TensorRecord> records) {
  const DtypeBits dtypes;
  ExtentMemo extents;
  for (const fb::TensorRecord& record : records) {
    const Rule rule = broken_rule(pools, dtypes, record, extents);
    if (rule != Rule::kept) [[unlikely]]
      return Failure(explain(Code::corrupt, rule, pools, record));
  }
  return {};
}

Result<> check_order(std::span<const std::uint32_t> order) {
  std::uint32_t greatest = 0;
  for (const std::uint32_t index : order) greatest = std::max(greatest, index);
  if (!order.empty() && greatest >= order.size()) {
    return fail(Code::corrupt, "the order of names: tensor {} of {}", format_count(greatest),
                format_count(order.size()));
  }
  return {};
}

Result<> check_values(const fb::Manifest& root) {
  for (std::uint32_t at = 0; at < size_of(root.attributes()); ++at) {
    const fb::Attribute& attribute = *root.attributes()->Get(at);
    const bool known =
        attribute.value_type() != fb::Value::NONE && attribute.value_type() <= fb::Value::MAX;
    if (!known || attribute.value() == nullptr) {
      return fail(Code::corrupt, "attribute {}: a value of type {}, or none", format_count(at),
                  static_cast<unsigned>(attribute.value_type()));
    }
  }
  return {};
}

Result<Sizes> check_sizes(const Manifest& manifest) {
  Sizes sizes;
  std::uint32_t at = 0;
  for (const SegmentView segment : manifest.segments()) {
    TRY(check_segment(Code::corrupt, at, segment));
    sizes.segment_used_bytes[at++] = segment.used_bytes;
  }
  sizes.file_bytes.reserve(manifest.files().size());
  for (const FileView file : manifest.files()) sizes.file_bytes.push_back(file.bytes);
  return sizes;
}

Result<> check_fingerprint_text(std::string_view fingerprint) {
  if (fingerprint.size() == kFingerprintDigits && is_lower_hex(fingerprint)) return {};
  return fail(Code::corrupt, "the fingerprint \"{}\" is not {} hexadecimal digits",
              shown(fingerprint), kFingerprintDigits);
}

}  // namespace

Result<> check_segment(Code code, std::uint32_t index, const SegmentView& segment) {
  const auto refuse = [&](std::string_view what) {
    return fail(code, "segment {}: {} bytes, {} used, at address {:#x}: {}", index,
                format_count(segment.bytes), format_count(segment.used_bytes), segment.address,
                what);
  };
  if (segment.bytes == 0) return refuse("it is empty");
  if (segment.bytes > kMaxSegmentBytes)
    return refuse("more than " + format_bytes(kMaxSegmentBytes));
  if (segment.used_bytes > segment.bytes) return refuse("more is used than there is");
  if (segment.address % kAddressAlignment != 0)
    return refuse("the address is no multiple of " + format_count(kAddressAlignment));
  if (segment.address > kMaxAddress - segment.bytes) return refuse("the range ends past 2^57");
  return {};
}

Result<Manifest> Checker::run(std::span<const std::byte> buffer, bool full) {
  TRY(check_envelope(buffer));
  Manifest manifest;
  manifest.root_ = fb::GetManifest(buffer.data());
  const fb::Manifest& root = *manifest.root_;
  TRY(check_counts(root));
  TRY(check_vector_alignment(root));
  manifest.tensors_ = size_of(root.tensors());
  if (manifest.tensors_ != 0) {
    manifest.records_ = reinterpret_cast<const fb::TensorRecord*>(root.tensors()->Data());
    manifest.order_ = root.by_name()->data();
  }
  Pools pools;
  if (root.integers() != nullptr)
    pools.integers = {root.integers()->data(), root.integers()->size()};
  if (root.text() != nullptr) pools.text = {root.text()->c_str(), root.text()->size()};
  manifest.integers_ = pools.integers.data();
  manifest.text_ = pools.text.data();

  const Sizes sizes = TRY(check_sizes(manifest));
  pools.segment_used_bytes = std::span(sizes.segment_used_bytes).first(size_of(root.segments()));
  pools.file_bytes = sizes.file_bytes;
  for (const SegmentView segment : manifest.segments()) {
    manifest.segment_bytes_ += segment.bytes;
    manifest.used_bytes_ += segment.used_bytes;
  }
  const std::span records(manifest.records_, manifest.tensors_);
  TRY(check_records(pools, records));
  TRY(check_order({manifest.order_, manifest.tensors_}));
  TRY(check_values(root));
  TRY(check_fingerprint_text(manifest.fingerprint()));
  if (full) TRY(check_meaning(manifest, pools, records));
  return manifest;
}

Result<Manifest> Manifest::check(std::span<const std::byte> buffer, const CheckOptions& options) {
  auto checked = Checker::run(buffer, options.full);
  if (!checked) return Failure(std::move(checked).error().within("manifest: "));
  return checked;
}

}  // namespace wc::manifest
