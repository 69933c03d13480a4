// Messages to bytes and back. Pure: no socket, no allocation that the packet's size does not bound.
// What decode() returns has been verified and may be read without further checks of its layout; the
// values in it are the peer's, and are checked by whoever uses them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "messages_generated.h"

namespace wc::wire {

inline constexpr std::size_t kMaxPacketBytes = 64 * 1024;
inline constexpr std::uint16_t kMinVersion = 1;
inline constexpr std::uint16_t kMaxVersion = 1;
inline constexpr std::size_t kMaxSegments = 240;  // with the manifest below 250 descriptors
inline constexpr std::size_t kMaxAliases = 64;
inline constexpr std::size_t kMaxTextBytes = 4096;  // of any one string, a form's JSON excepted
inline constexpr std::size_t kMaxFormBytes = 16 * 1024;

using Bytes = std::vector<std::byte>;

/// `body` is any table of the union, as flatc's object API has it (fb::AttachT, ...).
/// Errors: exhausted (larger than a packet).
template <typename BodyT>
[[nodiscard]] Result<Bytes> encode(std::uint64_t request, const BodyT& body);

/// Verifies a packet. The message points into it. Errors: corrupt.
[[nodiscard]] Result<const fb::Message*> decode(std::span<const std::byte> packet);

/// The body as BodyT. A Failure becomes its Error; another type is `corrupt` and says which came.
template <typename BodyT>
[[nodiscard]] Result<BodyT> body_as(const fb::Message& message);

/// "Attach", for messages and logs.
[[nodiscard]] std::string_view name_of(fb::Body type);

[[nodiscard]] fb::FailureT to_failure(const Error& error);
[[nodiscard]] Error to_error(const fb::Failure& failure);

/// The highest version that both ranges have. Errors: version, naming both ranges.
struct VersionRange {
  std::uint16_t min = kMinVersion;
  std::uint16_t max = kMaxVersion;
};
[[nodiscard]] Result<std::uint16_t> common_version(const VersionRange& mine,
                                                   const VersionRange& theirs);

// ---- templates
// -----------------------------------------------------------------------------------

namespace detail {
[[nodiscard]] Result<Bytes> encode(std::uint64_t request, const fb::BodyUnion& body);
[[nodiscard]] Error wrong_body(const fb::Message& message, fb::Body wanted);
}  // namespace detail

template <typename BodyT>
Result<Bytes> encode(std::uint64_t request, const BodyT& body) {
  fb::BodyUnion any;
  any.Set(BodyT(body));
  return detail::encode(request, any);
}

template <typename BodyT>
Result<BodyT> body_as(const fb::Message& message) {
  using Table = typename BodyT::TableType;
  const auto* table = message.body_as<Table>();
  if (table == nullptr)
    return ::wc::Failure(detail::wrong_body(message, fb::BodyTraits<Table>::enum_value));
  BodyT out;
  table->UnPackTo(&out);
  return out;
}

}  // namespace wc::wire
