// What the hub's own records say a file's SHA-256 is. A claim counts only while the file is not
// younger than the record; which of the two times of a file, mtime and ctime, is the later one
// decides, since mtime alone can be set back.
#pragma once

#include <string>

#include "checkpoint/beneath.hpp"
#include "checkpoint/receipt.hpp"

namespace wc::checkpoint {

/// 64 hexadecimal digits in lower case, or nothing. `receipt`: of the file under this name.
/// Whatever fails on the way to a claim only means that there is none.
[[nodiscard]] std::string claimed_sha256(const Beneath& folder, const std::string& name,
                                         const Receipt& receipt);

}  // namespace wc::checkpoint
