// What a client says of itself, for people: valid UTF-8 without control characters, bounded. Inside
// this folder only.
#pragma once

#include <string>
#include <string_view>

#include "wire/codec.hpp"

namespace wc::client {

/// Errors do not exist: what can't be found out stays empty.
[[nodiscard]] wire::fb::HelloT introduce(const std::string& label,
                                         const wire::VersionRange& versions);

/// "docker-0123456789ab", "a1b2c3d4e5f6", or nothing, out of the text of /proc/PID/cgroup.
[[nodiscard]] std::string container_in(std::string_view control_groups);

/// Control characters become spaces, what is no UTF-8 becomes "?".
[[nodiscard]] std::string plain_text(std::string_view text, std::size_t max_bytes);

}  // namespace wc::client
