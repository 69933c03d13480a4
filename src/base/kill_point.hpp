// Named places where a process can be made to die, for the tests that kill it at each of them:
// WEIGHTCACHE_KILL_AT=NAME, and the process that reaches kill_point(NAME) gets SIGKILL there, as
// from outside: nothing is flushed, nothing unwinds. Always compiled in, so that what is tested is
// what ships; the environment is read once, and an unarmed point costs one comparison.
// NAME:N means the N-th time that a process of the family (that process and all it forks, which
// count together) comes there, and only then. Thread-safe.
#pragma once

#include <string_view>

namespace wc {

void kill_point(std::string_view name);

/// The point that this process dies at, as in the environment; empty: none. For a test that forks
/// after the environment has been read.
void arm_kill_point(std::string_view name);

}  // namespace wc
