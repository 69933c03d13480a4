// A folder whose files are opened beneath a root: no name and no link leads out of it, unless links
// were allowed to. The kernel decides (openat2, RESOLVE_BENEATH), at the moment of opening. What is
// no regular file is refused without being opened: a FIFO does not block, a device is not touched.
// Immutable; threads may use it together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/fd.hpp"
#include "base/result.hpp"
#include "checkpoint/receipt.hpp"

namespace wc::checkpoint {

struct OpenedFile {
  Fd fd;
  Receipt receipt;
};

class Beneath {
 public:
  struct Place {
    std::string root;    // nothing outside of it is opened
    std::string inside;  // from root to the folder: "snapshots/REV", or empty
    bool follow_symlinks = false;
  };
  /// Errors: not_found, denied, io.
  static Result<Beneath> open(Place place);

  /// A regular file of the folder, open for reading. Errors: not_found (missing, or a link to what
  /// is missing), corrupt (no regular file), denied (a link that leaves, or no right), exhausted
  /// (too many open files), unsupported (no openat2), io.
  [[nodiscard]] Result<OpenedFile> open_file(const std::string& name) const;
  /// Its receipt, without opening it. The same errors.
  [[nodiscard]] Result<Receipt> receipt_of_file(const std::string& name) const;
  /// What is under a name itself, a link not followed; nothing where there is nothing.
  [[nodiscard]] std::optional<struct stat> status_of_entry(const std::string& name) const;
  /// Where a link points to; empty for what is none.
  [[nodiscard]] std::string link_target(const std::string& name) const;
  /// A small regular file's content, for what stands beside a checkpoint. The errors of open_file,
  /// and corrupt for one that is longer.
  [[nodiscard]] Result<std::string> read_small(const std::string& name,
                                               std::size_t most_bytes) const;

  [[nodiscard]] const std::string& root() const { return place_.root; }
  /// The folder's absolute path.
  [[nodiscard]] std::string folder() const;

 private:
  Beneath(Place place, Fd root) : place_(std::move(place)), root_(std::move(root)) {}
  [[nodiscard]] std::string path_of(const std::string& name) const;
  [[nodiscard]] Result<Fd> open_with(const std::string& name, int flags) const;
  [[nodiscard]] Failure why_not(const std::string& name, int number) const;

  Place place_;
  Fd root_;  // O_PATH
};

/// Fills `room` from the file's `offset`; what is missing at its end is `corrupt`: it shrank.
[[nodiscard]] Result<> read_at(FdView fd, std::span<char> room, std::uint64_t offset);

}  // namespace wc::checkpoint
