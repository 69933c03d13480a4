// The limits of a manifest: each bounds a loop or a buffer, is checked by the builder before
// writing and by Manifest::check after reading, and stands in docs/MANIFEST.md.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wc::manifest {

/// Where a tensor starts in its segment, unless it is a view.
inline constexpr std::uint64_t kTensorAlignment = 512;

inline constexpr std::uint64_t kMaxManifestBytes = std::uint64_t{1} << 30;
inline constexpr std::uint32_t kMaxTensors = std::uint32_t{1} << 22;
inline constexpr std::uint32_t kMaxRank = 64;
inline constexpr std::uint32_t kMaxNameBytes = 1024;  // of a tensor, a file, an attribute's path
inline constexpr std::uint32_t kMaxSegments = 240;    // their descriptors fit in one packet
inline constexpr std::uint64_t kMaxSegmentBytes = std::uint64_t{1} << 50;
inline constexpr std::uint64_t kMaxAddress = std::uint64_t{1} << 57;  // end of a fixed range
inline constexpr std::uint64_t kAddressAlignment = 4096;
inline constexpr std::uint32_t kMaxFiles = std::uint32_t{1} << 16;
inline constexpr std::uint32_t kMaxAttributes = std::uint32_t{1} << 20;
inline constexpr std::uint32_t kMaxAttributeNameBytes = 256;
inline constexpr std::uint32_t kMaxValueBytes = std::uint32_t{1} << 24;  // of a text or bytes
inline constexpr std::uint32_t kMaxDigestBytes = 192;
inline constexpr std::uint32_t kMaxProvenanceBytes = 4096;  // of each text
inline constexpr std::size_t kMaxFingerprintJsonBytes = std::size_t{1} << 24;
inline constexpr std::size_t kMaxJsonDepth = 32;
inline constexpr std::size_t kMaxJsonValues = std::size_t{1} << 20;
inline constexpr std::uint32_t kFingerprintDigits = 32;

}  // namespace wc::manifest
