#include "checkpoint/claim.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string_view>

#include <sys/stat.h>

#include "checkpoint/text.hpp"

namespace wc::checkpoint {
namespace {

constexpr std::size_t kSha256Digits = 64;
constexpr std::size_t kMaxRecordBytes = 4096;

// A hub cache: snapshots/REV/NAME is a link to ../../blobs/SHA256. (Small files are named by a
// shorter digest of git's.)
std::string claim_of_link(const Beneath& folder, const std::string& name, const Receipt& receipt,
                          const Receipt& link) {
  const std::string target = folder.link_target(name);
  const std::size_t slash = target.rfind('/');
  if (slash == std::string::npos) return {};
  const std::string_view parent = std::string_view(target).substr(0, slash);
  const std::string digits = target.substr(slash + 1);
  if (!(parent == "blobs" || parent.ends_with("/blobs")) || !is_hex(digits, kSha256Digits)) {
    return {};
  }
  // The blob itself, not what a further link may have put in its place.
  const auto blob = folder.status_of_entry(target);
  if (!blob || !S_ISREG(blob->st_mode) || receipt_of(*blob) != receipt) return {};
  const bool younger = receipt.mtime_ns > link.mtime_ns || receipt.ctime_ns > link.ctime_ns;
  return younger ? std::string() : digits;
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// `hf download --local-dir`: a record of three lines: commit, digest, seconds since the epoch.
std::string claim_of_record(const Beneath& folder, const std::string& name,
                            const Receipt& receipt) {
  const auto record =
      folder.read_small(".cache/huggingface/download/" + name + ".metadata", kMaxRecordBytes);
  if (!record) return {};
  std::string_view rest = *record;
  take_line(rest);
  const std::string digits(take_line(rest));
  const std::string_view seconds_text = take_line(rest);
  double seconds = 0;
  const char* end = seconds_text.data() + seconds_text.size();
  const auto [at, code] = std::from_chars(seconds_text.data(), end, seconds);
  constexpr double kFarFuture = 9e9;
  if (code != std::errc() || at != end || !(seconds > 0 && seconds < kFarFuture)) return {};
  if (!is_hex(digits, kSha256Digits)) return {};
  const auto recorded_ns = static_cast<std::int64_t>(std::ceil(seconds * 1e9));
  return std::max(receipt.mtime_ns, receipt.ctime_ns) > recorded_ns ? std::string() : digits;
}

}  // namespace

std::string claimed_sha256(const Beneath& folder, const std::string& name, const Receipt& receipt) {
  const auto entry = folder.status_of_entry(name);
  if (!entry) return {};
  if (S_ISLNK(entry->st_mode)) return claim_of_link(folder, name, receipt, receipt_of(*entry));
  return claim_of_record(folder, name, receipt);
}

}  // namespace wc::checkpoint
