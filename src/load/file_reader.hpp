// Reads exactly what was asked for, or says why not: short reads are continued, interrupted ones
// repeated, and an end of file before the expected one is a file that shrank.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "load/file_calls.hpp"

namespace wc::load {

/// Where bytes of a file are read from, and what the file is called in messages.
struct FilePlace {
  FdView fd;
  const std::string& name;
  std::uint64_t offset = 0;
};

/// Fills all places, one after the other; they are used up. Errors: corrupt (the file ended
/// before), io (name, offset, errno).
[[nodiscard]] Result<> read_into(FileCalls& calls, const FilePlace& from, std::span<iovec> places);

/// The same into one place.
[[nodiscard]] Result<> read_into(FileCalls& calls, const FilePlace& from, std::span<std::byte> to);

/// `corrupt`: "NAME" ends at OFFSET.
[[nodiscard]] Failure file_shrank(const std::string& name, std::uint64_t offset);

}  // namespace wc::load
