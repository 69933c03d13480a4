#include "api/source.hpp"

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "manifest/fingerprint.hpp"

namespace wc::api {
namespace {

constexpr std::string_view kShardSuffix = ".safetensors";

// Lengths stand before texts, so that no name can pass for a number beside it.
void append(std::string& list, std::string_view text) {
  list += format("{}:{};", text.size(), text);
}

std::string receipt_digest(const checkpoint::Survey& survey) {
  std::string list;
  for (const auto& file : survey.files) {
    append(list, file.name);
    list += format("{},{},{},{},{}\n", file.receipt.device, file.receipt.inode,
                   file.receipt.size_bytes, file.receipt.mtime_ns, file.receipt.ctime_ns);
  }
  return manifest::digest_of(list);
}

// The index, a few hundred KiB: the one file that decides what is loaded and has no claim.
std::string digest_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return {};
  const std::string content{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return file.bad() ? std::string() : manifest::digest_of(content);
}

}  // namespace

std::string expand_home(std::string_view path) {
  const char* home = std::getenv("HOME");
  const bool homely = path == "~" || path.starts_with("~/");
  return homely && home != nullptr ? std::string(home).append(path.substr(1)) : std::string(path);
}

std::string receipt_alias(const checkpoint::Survey& survey) {
  return "receipt:" + receipt_digest(survey);
}

std::string weak_receipt_alias(const checkpoint::Survey& survey) {
  return "weak-receipt:" + receipt_digest(survey);
}

std::string content_alias(const checkpoint::Survey& survey) {
  std::string list;
  for (const auto& file : survey.files) {
    const bool shard = file.name.ends_with(kShardSuffix);
    const std::string claim =
        shard ? file.claimed_sha256 : digest_of_file(survey.directory + "/" + file.name);
    if (claim.empty()) return {};
    append(list, file.name);
    append(list, claim);
  }
  return list.empty() ? std::string() : "sha256:" + manifest::digest_of(list);
}

std::vector<std::string> lookup_aliases(const checkpoint::Survey& survey) {
  return {receipt_alias(survey), weak_receipt_alias(survey)};
}

}  // namespace wc::api
