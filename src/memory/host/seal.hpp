// Memfds that nobody can change any more: how they are made, closed for good, and checked by
// whoever receives one. Used for segments and for what travels beside them (manifests). Owns
// nothing; threads may call everything here together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/fd.hpp"
#include "base/mapping.hpp"
#include "base/result.hpp"

namespace wc::memory {

/// An empty memfd that can be sealed; close-on-exec, not executable where the kernel knows how to
/// say so (6.3 and later). The name is what /proc shows. Errors: io.
[[nodiscard]] Result<Fd> make_memfd(const std::string& name);

/// Seals a memfd against writes, shrinking, growing and further seals, and gives a descriptor of it
/// that is open for reading only: kernels before 6.7 refuse shared read-only mappings of a
/// write-sealed descriptor that was opened for writing. The caller drops his own. Errors: busy (a
/// writable mapping, or a buffer registered with io_uring, is left), corrupt (no memfd, or one that
/// was closed to seals), io.
[[nodiscard]] Result<Fd> seal_and_reopen(FdView memfd);

/// Whether a descriptor is a memfd with exactly those seals, of this size, with every page there.
/// The seals are asked for first: on a foreign descriptor `fstat` may block, F_GET_SEALS can't.
/// Errors: corrupt, io.
[[nodiscard]] Result<> check_sealed(FdView memfd, std::uint64_t expected_bytes);

/// The same for one whose size isn't known, but bounded. Its size in bytes. Errors: corrupt, io.
[[nodiscard]] Result<std::uint64_t> sealed_bytes(FdView memfd, std::uint64_t max_bytes);

/// Whether a descriptor is a memfd that may still be written, of this size, with every page there.
/// Errors: corrupt, io.
[[nodiscard]] Result<> check_writable(FdView memfd, std::uint64_t expected_bytes);

/// A sealed memfd with these bytes, open for reading only. Errors: io, exhausted.
[[nodiscard]] Result<Fd> sealed_copy(const std::string& name, std::span<const std::byte> bytes);

/// Checks (as sealed_bytes) and maps it, shared and read-only. Errors: corrupt, io.
[[nodiscard]] Result<Mapping> map_sealed(FdView memfd, std::uint64_t max_bytes);

}  // namespace wc::memory
