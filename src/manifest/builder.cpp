#include "manifest/builder.hpp"

#include <array>
#include <type_traits>

#include "base/units.hpp"
#include "manifest/builder_state.hpp"
#include "manifest/check.hpp"
#include "manifest/text.hpp"

namespace wc::manifest {
namespace {

std::uint8_t flags_of(const TensorOptions& tensor) {
  return static_cast<std::uint8_t>((tensor.persistent ? kFlagPersistent : 0) |
                                   (tensor.requires_grad ? kFlagRequiresGrad : 0) |
                                   (tensor.view ? kFlagView : 0));
}

fb::TensorRecord record_of(const TensorOptions& tensor, std::uint64_t bytes, std::uint32_t name_at,
                           std::uint32_t shape_at, std::uint32_t strides_at) {
  return {tensor.offset,
          bytes,
          name_at,
          static_cast<std::uint32_t>(tensor.name.size()),
          0,
          shape_at,
          strides_at,
          static_cast<std::uint16_t>(tensor.segment),
          static_cast<std::uint8_t>(tensor.shape.size()),
          static_cast<std::uint8_t>(tensor.dtype),
          static_cast<std::uint8_t>(tensor.kind),
          flags_of(tensor),
          0,
          tensor.file ? *tensor.file + 1 : 0,
          tensor.file_offset};
}

// What would not even fit into a record's fields.
Result<> check_fields(const TensorOptions& tensor, std::size_t segments, std::size_t files) {
  const auto refuse = [&](const std::string& what) {
    return fail(Code::invalid_argument, "tensor \"{}\": {}", shown(tensor.name), what);
  };
  TRY(check_tensor_name(Code::invalid_argument, tensor.name));
  if (tensor.shape.size() > kMaxRank)
    return refuse(format("{} dimensions, at most {}", tensor.shape.size(), kMaxRank));
  if (!tensor.strides.empty() && tensor.strides.size() != tensor.shape.size()) {
    return refuse(
        format("{} strides for {} dimensions", tensor.strides.size(), tensor.shape.size()));
  }
  if (tensor.segment >= segments)
    return refuse(format("segment {} of {}", tensor.segment, segments));
  if (tensor.file && *tensor.file >= files)
    return refuse(format("file {} of {}", *tensor.file, files));
  return {};
}

Result<> check_room(std::size_t count, std::size_t limit, std::string_view what) {
  if (count < limit) return {};
  return fail(Code::invalid_argument, "a manifest holds at most {} {}", format_count(limit), what);
}

}  // namespace

std::uint32_t IntegerPool::intern(std::span<const std::int64_t> values) {
  std::uint64_t hash = values.size();
  for (const std::int64_t value : values)
    hash = (std::rotl(hash, 27) ^ static_cast<std::uint64_t>(value)) * 0x9e3779b97f4a7c15;
  const auto [first, last] = places_.equal_range(hash);
  for (auto at = first; at != last; ++at) {
    const auto stored = std::span(values_).subspan(at->second);
    if (stored.size() >= values.size() && std::equal(values.begin(), values.end(), stored.begin()))
      return at->second;
  }
  const auto place = static_cast<std::uint32_t>(values_.size());
  values_.insert(values_.end(), values.begin(), values.end());
  places_.emplace(hash, place);
  return place;
}

ValueView view_of(const Value& value) {
  return std::visit(
      [](const auto& held) -> ValueView {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, std::string>) {
          return std::string_view(held);
        } else if constexpr (std::is_same_v<Held, std::vector<std::byte>>) {
          return std::span<const std::byte>(held);
        } else {
          return held;
        }
      },
      value);
}

SegmentView view_of(const SegmentOptions& segment) {
  return {segment.bytes, segment.used_bytes, segment.digest, segment.address, segment.flags};
}

Builder::Builder() : state_(std::make_unique<State>()) {}
Builder::Builder(Builder&&) noexcept = default;
Builder& Builder::operator=(Builder&&) noexcept = default;
Builder::~Builder() = default;

void Builder::reserve(std::uint32_t tensors) {
  constexpr std::size_t kUsualNameBytes = 56;
  const std::size_t count = std::min(tensors, kMaxTensors);
  state_->records.reserve(count);
  state_->text.reserve(count * kUsualNameBytes);
}

Result<std::uint32_t> Builder::add_segment(const SegmentOptions& segment) {
  TRY(check_room(state_->segments.size(), kMaxSegments, "segments"));
  const auto index = static_cast<std::uint32_t>(state_->segments.size());
  const SegmentView view = view_of(segment);
  TRY(check_segment(Code::invalid_argument, index, view));
  TRY(check_segment_text(Code::invalid_argument, index, view));
  state_->segments.push_back(segment);
  state_->segment_used_bytes.push_back(segment.used_bytes);
  return index;
}

Result<> Builder::set_segment_digest(std::uint32_t segment, std::string digest) {
  if (segment >= state_->segments.size()) {
    return fail(Code::invalid_argument, "digest of segment {} of {}", segment,
                state_->segments.size());
  }
  SegmentView view;
  view.digest = digest;
  TRY(check_segment_text(Code::invalid_argument, segment, view));
  state_->segments[segment].digest = std::move(digest);
  return {};
}

Result<std::uint32_t> Builder::add_file(const FileOptions& file) {
  TRY(check_room(state_->files.size(), kMaxFiles, "files"));
  TRY(check_file(Code::invalid_argument, {file.name, file.bytes, file.digest, file.device,
                                          file.inode, file.mtime_ns, file.ctime_ns}));
  if (!state_->file_names.insert(file.name).second)
    return fail(Code::invalid_argument, "file \"{}\" was added before", file.name);
  state_->files.push_back(file);
  state_->file_bytes.push_back(file.bytes);
  return static_cast<std::uint32_t>(state_->files.size() - 1);
}

Result<std::uint32_t> Builder::add_tensor(const TensorOptions& tensor) {
  State& state = *state_;
  TRY(check_room(state.records.size(), kMaxTensors, "tensors"));
  TRY(check_fields(tensor, state.segments.size(), state.files.size()));

  // A record that points into the tensor's own name, shape and strides: the same rules are asked of
  // it as of a record that was read, before anything is added.
  std::array<std::int64_t, std::size_t{2} * kMaxRank> integers;
  const std::size_t rank = tensor.shape.size();
  const bool strided = !tensor.strides.empty() && !row_major(tensor.shape, tensor.strides);
  std::copy(tensor.shape.begin(), tensor.shape.end(), integers.begin());
  std::copy(tensor.strides.begin(), tensor.strides.end(),
            integers.begin() + static_cast<std::ptrdiff_t>(rank));
  const Pools pools = {tensor.name, std::span(integers).first(rank + tensor.strides.size()),
                       state.segment_used_bytes, state.file_bytes};
  const std::uint32_t own_strides = strided ? static_cast<std::uint32_t>(rank) : kContiguous;
  const unsigned bits = state.dtypes[static_cast<std::uint8_t>(tensor.dtype)];
  const auto unsized = record_of(tensor, 0, 0, 0, own_strides);
  const std::uint64_t bytes = bits == 0 ? 0 : extent_of(pools, unsized, bits).bytes;
  const auto record = record_of(tensor, bytes, 0, 0, own_strides);
  const Rule rule = broken_rule(pools, state.dtypes, record, extent_of);
  if (rule != Rule::kept) return Failure(explain(Code::invalid_argument, rule, pools, record));
  if (state.text.size() + tensor.name.size() > kMaxManifestBytes)
    return fail(Code::exhausted, "the names take more than {}", format_bytes(kMaxManifestBytes));

  const std::uint32_t shape_at = state.integers.intern(tensor.shape);
  const std::uint32_t strides_at = strided ? state.integers.intern(tensor.strides) : kContiguous;
  const auto name_at = static_cast<std::uint32_t>(state.text.size());
  state.text += tensor.name;
  state.records.push_back(record_of(tensor, bytes, name_at, shape_at, strides_at));
  return static_cast<std::uint32_t>(state.records.size() - 1);
}

Result<> Builder::set_attribute(const AttributeOptions& attribute) {
  TRY(check_room(state_->attributes.size(), kMaxAttributes, "attributes"));
  const AttributeView view = {attribute.path, attribute.name, attribute.of_tensor,
                              view_of(attribute.value)};
  TRY(check_attribute(Code::invalid_argument, view));
  AttributeKey key{attribute.path, attribute.of_tensor, attribute.name};
  if (!state_->attributes.try_emplace(std::move(key), attribute.value).second)
    return fail(Code::invalid_argument, "{} was set before", describe(view));
  return {};
}

Result<> Builder::set_fingerprint(const Fingerprint& fingerprint) {
  std::string json = TRY(canonical_json(fingerprint));
  state_->fingerprint = digest_of(json);
  state_->fingerprint_json = std::move(json);
  return {};
}

void Builder::set_provenance(ProvenanceOptions provenance) {
  for (std::string* text :
       {&provenance.publisher, &provenance.source, &provenance.command, &provenance.host}) {
    *text = to_utf8(*text, kMaxProvenanceBytes);
  }
  state_->provenance = std::move(provenance);
}

}  // namespace wc::manifest
