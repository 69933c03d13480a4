#include <cstring>

#include "base/units.hpp"
#include "manifest/builder.hpp"
#include "manifest/builder_state.hpp"
#include "manifest/check.hpp"
#include "manifest/order.hpp"
#include "manifest/text.hpp"

namespace wc::manifest {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

// A table with its own offsets, lengths and padding, generously.
constexpr std::uint64_t kTableBytes = 256;

std::uint64_t bytes_of(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return text->size();
  if (const auto* bytes = std::get_if<std::vector<std::byte>>(&value)) return bytes->size();
  return 0;
}

template <typename State>
std::uint64_t estimated_bytes(const State& state) {
  std::uint64_t bytes = 4096 + state.fingerprint_json.size() + 4 * kMaxProvenanceBytes;
  bytes += state.records.size() * (sizeof(fb::TensorRecord) + sizeof(std::uint32_t));
  bytes += state.text.size() + state.integers.values().size() * sizeof(std::int64_t);
  bytes += (state.segments.size() + state.files.size()) * kTableBytes;
  for (const FileOptions& file : state.files) bytes += file.name.size() + file.digest.size();
  for (const auto& [key, value] : state.attributes)
    bytes += kTableBytes + key.path.size() + key.name.size() + bytes_of(value);
  return bytes;
}

Offset<flatbuffers::String> write_text(FlatBufferBuilder& to, std::string_view text) {
  return to.CreateString(text.data(), text.size());
}

Offset<flatbuffers::Vector<Offset<fb::Segment>>> write(
    FlatBufferBuilder& to, const std::vector<SegmentOptions>& segments) {
  std::vector<Offset<fb::Segment>> tables;
  for (const SegmentOptions& segment : segments) {
    tables.push_back(fb::CreateSegment(to, segment.bytes, segment.used_bytes,
                                       write_text(to, segment.digest), segment.address,
                                       segment.flags));
  }
  return to.CreateVector(tables);
}

Offset<flatbuffers::Vector<Offset<fb::File>>> write(FlatBufferBuilder& to,
                                                    const std::vector<FileOptions>& files) {
  std::vector<Offset<fb::File>> tables;
  for (const FileOptions& file : files) {
    const auto name = write_text(to, file.name);
    const auto digest = write_text(to, file.digest);
    tables.push_back(fb::CreateFile(to, name, file.bytes, digest, file.device, file.inode,
                                    file.mtime_ns, file.ctime_ns));
  }
  return to.CreateVector(tables);
}

struct WrittenValue {
  fb::Value type;
  Offset<void> value;
};

// One function for each type that a value may have.
struct ValueWriter {
  FlatBufferBuilder& to;
  WrittenValue operator()(bool value) const {
    return {fb::Value::Boolean, fb::CreateBoolean(to, value).Union()};
  }
  WrittenValue operator()(std::int64_t value) const {
    return {fb::Value::Integer, fb::CreateInteger(to, value).Union()};
  }
  WrittenValue operator()(double value) const {
    return {fb::Value::Float, fb::CreateFloat(to, value).Union()};
  }
  WrittenValue operator()(const std::string& value) const {
    return {fb::Value::Text, fb::CreateText(to, write_text(to, value)).Union()};
  }
  WrittenValue operator()(const std::vector<std::byte>& value) const {
    std::uint8_t* place = nullptr;
    const auto bytes = to.CreateUninitializedVector(value.size(), &place);
    if (!value.empty()) std::memcpy(place, value.data(), value.size());
    return {fb::Value::Bytes, fb::CreateBytes(to, bytes).Union()};
  }
};

Offset<flatbuffers::Vector<Offset<fb::Attribute>>> write(
    FlatBufferBuilder& to, const std::map<AttributeKey, Value>& attributes) {
  std::vector<Offset<fb::Attribute>> tables;
  for (const auto& [key, value] : attributes) {
    const auto path = to.CreateSharedString(key.path);
    const auto name = to.CreateSharedString(key.name);
    const WrittenValue written = std::visit(ValueWriter{to}, value);
    tables.push_back(
        fb::CreateAttribute(to, path, name, key.of_tensor, written.type, written.value));
  }
  return to.CreateVector(tables);
}

Offset<fb::Provenance> write(FlatBufferBuilder& to, const ProvenanceOptions& provenance) {
  const auto publisher = write_text(to, provenance.publisher);
  const auto source = write_text(to, provenance.source);
  const auto command = write_text(to, provenance.command);
  const auto host = write_text(to, provenance.host);
  return fb::CreateProvenance(to, publisher, source, command, host, provenance.published_unix_ns,
                              provenance.took_ns);
}

}  // namespace

Result<> Builder::State::check_whole(std::span<const std::uint32_t> order) const {
  if (fingerprint.empty()) return fail(Code::invalid_argument, "the manifest has no fingerprint");
  for (std::size_t at = 1; at < order.size(); ++at) {
    if (name_of(order[at - 1]) == name_of(order[at])) {
      return fail(Code::invalid_argument, "tensor \"{}\" was added twice",
                  shown(name_of(order[at])));
    }
  }
  if (const auto index = misaligned(records))
    return Failure(explain_misaligned(Code::invalid_argument, pools(), records[*index]));
  std::vector<SegmentView> views;
  for (const SegmentOptions& segment : segments) views.push_back(view_of(segment));
  TRY(check_addresses(Code::invalid_argument, views));
  for (const auto& [key, value] : attributes) {
    const auto at = std::lower_bound(
        order.begin(), order.end(), key.path,
        [&](std::uint32_t tensor, const std::string& path) { return name_of(tensor) < path; });
    if (key.of_tensor && (at == order.end() || name_of(*at) != key.path)) {
      return fail(Code::invalid_argument, "{}: there is no such tensor",
                  describe({key.path, key.name, true, view_of(value)}));
    }
  }
  return {};
}

Result<std::vector<std::byte>> Builder::finish() const {
  const State& state = *state_;
  std::vector<std::string_view> names(state.records.size());
  for (std::uint32_t at = 0; at < names.size(); ++at) names[at] = state.name_of(at);
  const std::vector<std::uint32_t> order = sorted_by_name(names);
  TRY(state.check_whole(order));
  const std::uint64_t estimate = estimated_bytes(state);
  if (estimate > kMaxManifestBytes) {
    return fail(Code::exhausted, "the manifest takes about {}, at most {}", format_bytes(estimate),
                format_bytes(kMaxManifestBytes));
  }
  FlatBufferBuilder to(static_cast<std::size_t>(estimate));
  const auto fingerprint = write_text(to, state.fingerprint);
  const auto json = write_text(to, state.fingerprint_json);
  const auto text = write_text(to, state.text);
  const auto integers = to.CreateVector(state.integers.values());
  const auto by_name = to.CreateVector(order);
  const auto segments = write(to, state.segments);
  const auto files = write(to, state.files);
  const auto attributes = write(to, state.attributes);
  const auto provenance = write(to, state.provenance);
  const auto tensors = to.CreateVectorOfStructs(state.records);
  fb::FinishManifestBuffer(
      to, fb::CreateManifest(to, fingerprint, json, tensors, by_name, text, integers, segments,
                             files, attributes, provenance));
  const auto* bytes = reinterpret_cast<const std::byte*>(to.GetBufferPointer());
  return std::vector<std::byte>(bytes, bytes + to.GetSize());
}

}  // namespace wc::manifest
