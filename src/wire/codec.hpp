// Messages to bytes and back. Pure: no socket, no allocation that the packet's size does not bound.
// What decode() returns has been verified and may be read and unpacked without further checks of
// its layout, its sizes and its enumerations; all other values in it are the peer's, and are
// checked by whoever uses them. No thread rule: plain functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "messages_generated.h"
#include "wire/limits.hpp"

namespace wc::wire {

using Bytes = std::vector<std::byte>;

/// `body` is any table of the union, as flatc's object API has it (fb::AttachT, ...).
/// Errors: exhausted (larger than a packet), invalid_argument (a part beyond its limit, named).
template <typename BodyT>
[[nodiscard]] Result<Bytes> encode(std::uint64_t request, const BodyT& body);

/// Verifies a packet, which must start at a multiple of 8 (a vector's or an aligned array's bytes
/// do). The message points into it. A body type that this version does not know passes, so that a
/// request for it can be answered with `unsupported`: body_type() is then above fb::Body::MAX.
/// Errors: corrupt, saying what is wrong.
[[nodiscard]] Result<const fb::Message*> decode(std::span<const std::byte> packet);

/// The body as BodyT. A Failure becomes its Error; another type is `corrupt` and says which came.
template <typename BodyT>
[[nodiscard]] Result<BodyT> body_as(const fb::Message& message);

/// "Attach", for messages and logs; "a message of a later version" for a type that is none.
[[nodiscard]] std::string_view name_of(fb::Body type);

/// Texts past their limit are cut at a character's end.
[[nodiscard]] fb::FailureT to_failure(const Error& error);
/// A code that this version does not know becomes `internal`.
[[nodiscard]] Error to_error(const fb::Failure& failure);

/// The highest version that both ranges have. Errors: version, naming both ranges.
struct VersionRange {
  std::uint16_t min = kMinVersion;
  std::uint16_t max = kMaxVersion;
};
[[nodiscard]] Result<std::uint16_t> common_version(const VersionRange& mine,
                                                   const VersionRange& theirs);

/// As much of the text as fits, cut at the end of a UTF-8 character.
[[nodiscard]] std::string_view clipped(std::string_view text, std::size_t max_bytes);

// ---- templates ---------------------------------------------------------------------------------

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
