// Processes as the daemon uses them: forked with nothing of the parent's but what they are given,
// named in `ps`, dying with their parent, waited for by descriptor. Single-threaded callers only.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace wc::daemon {

/// A descriptor of a child that has not been waited for. Errors: io.
[[nodiscard]] Result<Fd> pidfd_of(pid_t child);

/// The calling process gets SIGKILL when its parent, which must still be `parent`, dies; exits at
/// once if it is dead already.
void die_with_parent(pid_t parent);

/// Closes all descriptors above the standard three but these.
void close_all_but(std::vector<int> kept);

/// What `ps` shows, as far as the original command line has room; the short name gets as much as
/// fits in 15 bytes.
void set_process_title(std::string_view title);

/// Gives the signals that end a process their default meaning, lets none be blocked.
void reset_signals();

/// RssAnon: the process's own anonymous memory in bytes, without mapped files and shared memory
/// (which segments are). 0 where /proc does not tell.
[[nodiscard]] std::uint64_t own_memory_bytes();

/// Opens /dev/null in the place of each of the standard three that is closed: else the next file
/// to be opened would be taken for stderr. Errors: io.
[[nodiscard]] Result<> open_standard_descriptors();

/// Raises the soft limit of open files to the hard one. What it is now.
std::uint64_t raise_descriptor_limit();

}  // namespace wc::daemon
