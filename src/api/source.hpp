// A checkpoint by what it costs nothing to know: where it is, and the aliases that its files' stat
// receipts and the hub's claims make. No file's content is read but, for content_alias(), the
// index's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "checkpoint/survey.hpp"

namespace wc::api {

/// What is written with `~` as the shell would read it ("~" and "~/x" only).
[[nodiscard]] std::string expand_home(std::string_view path);

/// `receipt:<32 hex>`: device, inode, size, mtime and ctime of every file that counts.
[[nodiscard]] std::string receipt_alias(const checkpoint::Survey& survey);

/// `weak-receipt:<32 hex>`: the same of files that were read without a lease, so that a store
/// through a mapping may have gone unseen.
[[nodiscard]] std::string weak_receipt_alias(const checkpoint::Survey& survey);

/// `sha256:<32 hex>`: the digests that the hub claims for every shard, and the index's content.
/// Empty where a shard has no claim, or the index can't be read.
[[nodiscard]] std::string content_alias(const checkpoint::Survey& survey);

/// All that the survey's checkpoint may be found by: both receipts, strong first.
[[nodiscard]] std::vector<std::string> lookup_aliases(const checkpoint::Survey& survey);

}  // namespace wc::api
