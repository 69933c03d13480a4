// What this process can say of itself, for people.
#pragma once

#include <cstdint>
#include <string>

namespace wc::api {

/// "weightcache 0.1.0".
[[nodiscard]] std::string software_name();
/// The program's own name: "python3".
[[nodiscard]] std::string program_name();
/// Its arguments, separated by spaces; empty where /proc can't say.
[[nodiscard]] std::string command_line();
[[nodiscard]] std::string host_name();
[[nodiscard]] std::int64_t unix_now_ns();

}  // namespace wc::api
