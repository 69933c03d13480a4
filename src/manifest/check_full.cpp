#include <algorithm>
#include <iterator>
#include <tuple>

#include "base/units.hpp"
#include "manifest/check.hpp"
#include "manifest/fingerprint.hpp"
#include "manifest/text.hpp"

namespace wc::manifest {
namespace {

Result<> check_digest(Code code, std::string_view what, std::string_view digest) {
  if (digest.empty() || is_digest(digest)) return {};
  return fail(code, "{}: \"{}\" is no digest, like \"xxh3t-4m:\" and 32 hexadecimal digits", what,
              shown(digest));
}

// Ascending without equals: then no name stands twice, and the order is a permutation.
Result<> check_names(const Manifest& manifest) {
  for (std::uint32_t at = 0; at < manifest.tensor_count(); ++at) {
    TRY(check_tensor_name(Code::corrupt, manifest.tensor_name(at)));
  }
  for (std::uint32_t at = 1; at < manifest.tensor_count(); ++at) {
    const std::string_view before = manifest.tensor_name(manifest.by_name(at - 1));
    const std::string_view name = manifest.tensor_name(manifest.by_name(at));
    if (before >= name) {
      return fail(Code::corrupt, "the order of names: \"{}\" comes before \"{}\" at {}",
                  shown(before), shown(name), format_count(at));
    }
  }
  return {};
}

Result<> check_files(const Manifest& manifest) {
  std::vector<std::string_view> names;
  for (const FileView file : manifest.files()) {
    TRY(check_file(Code::corrupt, file));
    names.push_back(file.name);
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) return fail(Code::corrupt, "file \"{}\" is listed twice", *twice);
  return {};
}

Result<> check_attributes(const Manifest& manifest) {
  const auto key = [](const AttributeView& attribute) {
    return std::tuple(attribute.path, attribute.of_tensor, attribute.name);
  };
  AttributeView before;
  bool first = true;
  for (const AttributeView attribute : manifest.attributes()) {
    TRY(check_attribute(Code::corrupt, attribute));
    if (attribute.of_tensor && !manifest.find(attribute.path))
      return fail(Code::corrupt, "{}: there is no such tensor", describe(attribute));
    if (!first && key(before) >= key(attribute)) {
      return fail(Code::corrupt, "{} comes before {}: not in ascending order", describe(before),
                  describe(attribute));
    }
    before = attribute;
    first = false;
  }
  return {};
}

Result<> check_segments(const Manifest& manifest) {
  std::vector<SegmentView> segments;
  for (const SegmentView segment : manifest.segments()) {
    TRY(check_segment_text(Code::corrupt, static_cast<std::uint32_t>(segments.size()), segment));
    segments.push_back(segment);
  }
  return check_addresses(Code::corrupt, segments);
}

Result<> check_provenance(const ProvenanceView& provenance) {
  for (const std::string_view text :
       {provenance.publisher, provenance.source, provenance.command, provenance.host}) {
    if (text.size() > kMaxProvenanceBytes || !is_utf8(text)) {
      return fail(Code::corrupt, "provenance \"{}\": no UTF-8, or more than {} bytes", shown(text),
                  format_count(kMaxProvenanceBytes));
    }
  }
  return {};
}

Result<> check_identity(const Manifest& manifest) {
  const std::string_view json = manifest.fingerprint_json();
  const auto refuse = [](Error error) {
    return Failure(Error{Code::corrupt, "fingerprint document: " + error.message, {}});
  };
  auto parsed = parse_fingerprint(json);
  if (!parsed) return refuse(std::move(parsed).error());
  const auto canonical = canonical_json(*parsed);
  if (!canonical) return refuse(canonical.error());
  if (*canonical != json) {
    return fail(Code::corrupt, "fingerprint document: {} bytes that are not its canonical form",
                format_count(json.size()));
  }
  const std::string digest = digest_of(json);
  if (digest != manifest.fingerprint()) {
    return fail(Code::corrupt, "the fingerprint is {}, its document's is {}",
                manifest.fingerprint(), digest);
  }
  return {};
}

}  // namespace

Result<> check_meaning(const Manifest& manifest, const Pools& pools,
                       std::span<const fb::TensorRecord> records) {
  if (!is_utf8(pools.text)) return fail(Code::corrupt, "the pool of names is no UTF-8");
  TRY(check_names(manifest));
  if (const auto index = misaligned(records))
    return Failure(explain_misaligned(Code::corrupt, pools, records[*index]));
  TRY(check_segments(manifest));
  TRY(check_files(manifest));
  TRY(check_attributes(manifest));
  TRY(check_provenance(manifest.provenance()));
  return check_identity(manifest);
}

Result<> check_tensor_name(Code code, std::string_view name) {
  if (name.empty() || name.size() > kMaxNameBytes) {
    return fail(code, "tensor \"{}\": a name of {} bytes, 1 to {} are allowed", shown(name),
                format_count(name.size()), format_count(kMaxNameBytes));
  }
  if (is_plain(name)) return {};
  return fail(code, "tensor \"{}\": its name is no UTF-8, or has a control character", shown(name));
}

Result<> check_segment_text(Code code, std::uint32_t index, const SegmentView& segment) {
  return check_digest(code, format("segment {}", index), segment.digest);
}

Result<> check_addresses(Code code, std::span<const SegmentView> segments) {
  std::vector<SegmentView> fixed;
  std::copy_if(segments.begin(), segments.end(), std::back_inserter(fixed),
               [](const SegmentView& segment) { return segment.address != 0; });
  std::sort(fixed.begin(), fixed.end(), [](const SegmentView& left, const SegmentView& right) {
    return left.address < right.address;
  });
  for (std::size_t at = 1; at < fixed.size(); ++at) {
    const SegmentView& below = fixed[at - 1];
    if (fixed[at].address - below.address < below.bytes) {
      return fail(code, "segments at addresses {:#x} ({} bytes) and {:#x} overlap", below.address,
                  format_count(below.bytes), fixed[at].address);
    }
  }
  return {};
}

Result<> check_file(Code code, const FileView& file) {
  if (file.name.empty() || file.name.size() > kMaxNameBytes || !is_plain(file.name)) {
    return fail(code,
                "file \"{}\": a name of {} bytes; 1 to {} bytes of UTF-8 without control "
                "characters are allowed",
                shown(file.name), format_count(file.name.size()), format_count(kMaxNameBytes));
  }
  return check_digest(code, format("file \"{}\"", file.name), file.digest);
}

std::string describe(const AttributeView& attribute) {
  return format("attribute \"{}\" of {} \"{}\"", shown(attribute.name),
                attribute.of_tensor ? "tensor" : "module", shown(attribute.path));
}

Result<> check_attribute(Code code, const AttributeView& attribute) {
  if (attribute.path.size() > kMaxNameBytes || !is_plain(attribute.path)) {
    return fail(code, "{}: a path of {} bytes; at most {}, UTF-8 without control characters",
                describe(attribute), format_count(attribute.path.size()),
                format_count(kMaxNameBytes));
  }
  const std::size_t name_bytes = attribute.name.size();
  if (name_bytes == 0 || name_bytes > kMaxAttributeNameBytes || !is_plain(attribute.name)) {
    return fail(code, "{}: a name of {} bytes; 1 to {}, UTF-8 without control characters",
                describe(attribute), format_count(name_bytes),
                format_count(kMaxAttributeNameBytes));
  }
  std::size_t value_bytes = 0;
  if (const auto* text = std::get_if<std::string_view>(&attribute.value)) {
    if (!is_utf8(*text)) return fail(code, "{}: its text is no UTF-8", describe(attribute));
    value_bytes = text->size();
  } else if (const auto* bytes = std::get_if<std::span<const std::byte>>(&attribute.value)) {
    value_bytes = bytes->size();
  }
  if (value_bytes <= kMaxValueBytes) return {};
  return fail(code, "{}: {}, at most {}", describe(attribute), format_bytes(value_bytes),
              format_bytes(kMaxValueBytes));
}

}  // namespace wc::manifest
