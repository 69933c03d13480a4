// The bounds of the catalog: each stands before a table or a text, is checked before anything is
// changed, and is answered by `exhausted` or `invalid_argument` with the number in the message.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace wc::catalog {

inline constexpr std::size_t kMaxSessions = 16'384;
inline constexpr std::size_t kMaxEntries = 4'096;  // loading, resident, gone, being released
inline constexpr std::size_t kMaxSets = 16'384;    // names that refer to entries, all generations
inline constexpr std::size_t kMaxPlacesOfEntry = 4'096;  // names and ranks that refer to one
inline constexpr std::size_t kMaxLinesOfName = 256;
inline constexpr std::size_t kMaxDevices = 256;

inline constexpr std::size_t kMaxLeases = 1'000'000;
inline constexpr std::size_t kMaxLeasesOfSession = 65'536;
inline constexpr std::size_t kMaxWaits = 16'384;
inline constexpr std::size_t kMaxWaitsOfSession = 64;
inline constexpr std::size_t kMaxLoadsOfSession = 16;

inline constexpr std::size_t kMaxNameBytes = 256;
inline constexpr std::size_t kMaxFormBytes = 16 * 1024;
inline constexpr std::size_t kMaxDeviceBytes = 128;
inline constexpr std::size_t kMaxDigestBytes = 64;  // of a structure or a source
inline constexpr std::size_t kMaxSourceBytes = 4'096;
inline constexpr std::size_t kMaxFailureBytes = 1'024;  // of what a reader says, the rest is cut
inline constexpr std::size_t kFingerprintDigits = 32;
inline constexpr std::size_t kMinPrefixDigits = 4;
inline constexpr std::uint32_t kMaxWorld = 1'024;

inline constexpr std::size_t kMaxAliasBytes = 512;
inline constexpr std::size_t kMaxAliasesOfEntry = 256;  // the oldest go when more come
inline constexpr std::size_t kMaxAliases = 262'144;     // of all entries

inline constexpr std::size_t kMaxSegments = 240;  // their descriptors fit in one packet
inline constexpr std::uint64_t kMaxSegmentBytes = std::uint64_t{1} << 50;

inline constexpr std::size_t kMaxPage = 4'096;        // rows of one list or leases
inline constexpr std::size_t kMaxLeaseScan = 65'536;  // leases looked at for one page
inline constexpr std::size_t kMaxForgotten = 4'096;   // names whose generations are remembered
inline constexpr std::size_t kMaxForgottenBytes = std::size_t{4} << 20;

inline constexpr std::chrono::milliseconds kProgressInterval{250};  // of one waiting request
inline constexpr std::chrono::hours kMaxWait{24};
inline constexpr std::chrono::minutes kProtection{10};        // after a reader's death, unless set
inline constexpr std::chrono::hours kMaxKeepAlive{24 * 366};  // longer is for ever

}  // namespace wc::catalog
