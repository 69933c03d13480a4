#include "manifest/manifest.hpp"

#include <algorithm>

#include "manifest/records.hpp"

namespace wc::manifest {
namespace {

std::string_view text_of(const flatbuffers::String* text) {
  return text == nullptr ? std::string_view() : std::string_view(text->c_str(), text->size());
}

template <typename Vector>
std::uint32_t size_of(const Vector* vector) {
  return vector == nullptr ? 0 : vector->size();
}

// check() has seen that the value is of a known type and not absent.
ValueView value_of(const fb::Attribute& attribute) {
  switch (attribute.value_type()) {
    case fb::Value::Boolean:
      return attribute.value_as_Boolean()->value();
    case fb::Value::Integer:
      return attribute.value_as_Integer()->value();
    case fb::Value::Float:
      return attribute.value_as_Float()->value();
    case fb::Value::Text:
      return text_of(attribute.value_as_Text()->value());
    default:
      break;
  }
  const auto* bytes = attribute.value_as_Bytes()->value();
  if (bytes == nullptr) return std::span<const std::byte>();
  return std::as_bytes(std::span(bytes->data(), bytes->size()));
}

}  // namespace

template <>
SegmentView List<SegmentView>::operator[](std::uint32_t index) const {
  const fb::Segment& segment = *root_->segments()->Get(first_ + index);
  return {segment.bytes(), segment.used_bytes(), text_of(segment.digest()), segment.address(),
          segment.flags()};
}

template <>
FileView List<FileView>::operator[](std::uint32_t index) const {
  const fb::File& file = *root_->files()->Get(first_ + index);
  return {text_of(file.name()), file.bytes(),    text_of(file.digest()), file.device(),
          file.inode(),         file.mtime_ns(), file.ctime_ns()};
}

template <>
AttributeView List<AttributeView>::operator[](std::uint32_t index) const {
  const fb::Attribute& attribute = *root_->attributes()->Get(first_ + index);
  return {text_of(attribute.path()), text_of(attribute.name()), attribute.of_tensor(),
          value_of(attribute)};
}

TensorView Manifest::tensor(std::uint32_t index) const {
  const fb::TensorRecord& record = records_[index];
  const bool strided = record.strides_at() != kContiguous;
  const auto flag = [&](std::uint8_t bit) { return (record.flags() & bit) != 0; };
  return {
      .name = {text_ + record.name_at(), record.name_bytes()},
      .dtype = static_cast<Dtype>(record.dtype()),
      .shape = {integers_ + record.shape_at(), record.rank()},
      .strides = {integers_ + (strided ? record.strides_at() : 0),
                  strided ? std::size_t{record.rank()} : 0},
      .segment = record.segment(),
      .offset = record.offset(),
      .bytes = record.bytes(),
      .kind = static_cast<Kind>(record.kind()),
      .persistent = flag(kFlagPersistent),
      .requires_grad = flag(kFlagRequiresGrad),
      .view = flag(kFlagView),
      .file = record.file() != 0 ? std::optional(record.file() - 1) : std::nullopt,
      .file_offset = record.file_offset(),
  };
}

std::string_view Manifest::tensor_name(std::uint32_t index) const {
  return {text_ + records_[index].name_at(), records_[index].name_bytes()};
}

std::uint32_t Manifest::by_name(std::uint32_t position) const { return order_[position]; }

std::optional<std::uint32_t> Manifest::find(std::string_view name) const {
  const std::uint32_t* end = order_ + tensors_;
  const std::uint32_t* at = std::lower_bound(
      order_, end, name,
      [&](std::uint32_t index, std::string_view wanted) { return tensor_name(index) < wanted; });
  if (at == end || tensor_name(*at) != name) return std::nullopt;
  return *at;
}

List<SegmentView> Manifest::segments() const { return {root_, 0, size_of(root_->segments())}; }

List<FileView> Manifest::files() const { return {root_, 0, size_of(root_->files())}; }

List<AttributeView> Manifest::attributes() const {
  return {root_, 0, size_of(root_->attributes())};
}

List<AttributeView> Manifest::attributes_of(std::string_view path) const {
  const std::uint32_t size = size_of(root_->attributes());
  const auto bound = [&](auto before) {
    std::uint32_t low = 0;
    std::uint32_t high = size;
    while (low < high) {
      const std::uint32_t middle = low + (high - low) / 2;
      if (before(text_of(root_->attributes()->Get(middle)->path()))) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  };
  const std::uint32_t first = bound([&](std::string_view at) { return at < path; });
  const std::uint32_t last = bound([&](std::string_view at) { return at <= path; });
  return {root_, first, std::max(first, last) - first};
}

ProvenanceView Manifest::provenance() const {
  const fb::Provenance* from = root_->provenance();
  if (from == nullptr) return {};
  return {text_of(from->publisher()), text_of(from->source()),   text_of(from->command()),
          text_of(from->host()),      from->published_unix_ns(), from->took_ns()};
}

std::string_view Manifest::fingerprint() const { return text_of(root_->fingerprint()); }

std::string_view Manifest::fingerprint_json() const { return text_of(root_->fingerprint_json()); }

}  // namespace wc::manifest
