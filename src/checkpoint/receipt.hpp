// The stat receipt of a file: what must be the same for its bytes to be taken as unchanged without
// reading them. Receipts do not see stores through a mapping of the file: see Checkpoint::open and
// the loader's read lease.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include <sys/stat.h>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace wc::checkpoint {

struct Receipt {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size_bytes = 0;
  std::int64_t mtime_ns = 0;  // since the epoch
  std::int64_t ctime_ns = 0;
  auto operator<=>(const Receipt&) const = default;
};

/// Errors: io.
[[nodiscard]] Result<Receipt> receipt_of(FdView fd);
[[nodiscard]] Receipt receipt_of(const struct stat& status);

/// In words, for messages: "size 4,096 -> 8,192, mtime changed"; empty where they are equal.
[[nodiscard]] std::string difference(const Receipt& before, const Receipt& after);

}  // namespace wc::checkpoint
