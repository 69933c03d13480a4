#include "wire/codec.hpp"

#include <algorithm>
#include <bit>

#include "base/units.hpp"
#include "wire/parts.hpp"

namespace wc::wire {
namespace {

// A message has at most four tables below each other; a packet holds no more than this many tables,
// none being smaller than its vtable's offset and the offset that leads to it.
constexpr flatbuffers::uoffset_t kMaxDepth = 8;
constexpr flatbuffers::uoffset_t kMaxTables = kMaxPacketBytes / 8;
constexpr std::size_t kAlignment = 8;

}  // namespace

Result<const fb::Message*> decode(std::span<const std::byte> packet) {
  if (packet.size() > kMaxPacketBytes) {
    return fail(Code::corrupt, "a packet of {} bytes ({} at most)", format_count(packet.size()),
                format_count(kMaxPacketBytes));
  }
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(packet.data());
  if (std::bit_cast<std::uintptr_t>(bytes) % kAlignment != 0)
    return fail(Code::internal, "a packet in a buffer that is not aligned to {} bytes", kAlignment);
  flatbuffers::Verifier verifier(bytes, packet.size(), kMaxDepth, kMaxTables);
  if (packet.size() < 2 * sizeof(flatbuffers::uoffset_t) || !fb::VerifyMessageBuffer(verifier)) {
    return fail(Code::corrupt, "a packet of {} bytes is no message of this protocol",
                format_count(packet.size()));
  }
  const auto* message = fb::GetMessage(bytes);
  if (message->body_type() == fb::Body::NONE || message->body() == nullptr)
    return fail(Code::corrupt, "a message without a body");
  auto parts = check_parts(Code::corrupt, *message, packet.size());
  if (!parts) {
    return Failure(std::move(parts).error().within(format("{}: ", name_of(message->body_type()))));
  }
  return message;
}

std::string_view name_of(fb::Body type) {
  if (type == fb::Body::NONE) return "nothing";
  if (type > fb::Body::MAX) return "a message of a later version";
  return fb::EnumNameBody(type);
}

std::string_view clipped(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  std::size_t end = max_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) --end;
  return text.substr(0, end);
}

fb::FailureT to_failure(const Error& error) {
  fb::FailureT failure;
  failure.code = static_cast<int>(error.code);
  failure.message = clipped(error.message, kMaxTextBytes);
  failure.origin = clipped(error.origin, kMaxTextBytes);
  return failure;
}

Error to_error(const fb::Failure& failure) {
  Error error;
  error.code = code_of(failure.code());
  if (error.code == Code::ok) error.code = Code::internal;
  if (failure.message() != nullptr) error.message = failure.message()->str();
  if (failure.origin() != nullptr) error.origin = failure.origin()->str();
  return error;
}

Result<std::uint16_t> common_version(const VersionRange& mine, const VersionRange& theirs) {
  const std::uint16_t highest = std::min(mine.max, theirs.max);
  if (highest >= mine.min && highest >= theirs.min) return highest;
  return fail(Code::version,
              "no common version: this side speaks protocol {} to {}, the other {} to {}", mine.min,
              mine.max, theirs.min, theirs.max);
}

namespace detail {

Result<Bytes> encode(std::uint64_t request, const fb::BodyUnion& body) {
  flatbuffers::FlatBufferBuilder builder(1024);
  const auto offset = body.Pack(builder);
  fb::FinishMessageBuffer(builder, fb::CreateMessage(builder, request, body.type, offset));
  const std::span<const std::byte> bytes(
      reinterpret_cast<const std::byte*>(builder.GetBufferPointer()), builder.GetSize());
  const auto* message = fb::GetMessage(builder.GetBufferPointer());
  auto parts = check_parts(Code::invalid_argument, *message, bytes.size());
  if (!parts) return Failure(std::move(parts).error().within(format("{}: ", name_of(body.type))));
  if (bytes.size() > kMaxPacketBytes) {
    return fail(Code::exhausted, "{} needs {} bytes, a packet has {}", name_of(body.type),
                format_count(bytes.size()), format_count(kMaxPacketBytes));
  }
  return Bytes(bytes.begin(), bytes.end());
}

Error wrong_body(const fb::Message& message, fb::Body wanted) {
  if (const auto* failure = message.body_as_Failure()) return to_error(*failure);
  return Error{
      Code::corrupt,
      format("the peer sent {} where {} was due", name_of(message.body_type()), name_of(wanted)),
      {}};
}

}  // namespace detail
}  // namespace wc::wire
