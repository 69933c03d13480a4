#include "manifest/fingerprint.hpp"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>
#include <xxhash.h>

#include "base/units.hpp"
#include "manifest/fingerprint_json.hpp"
#include "manifest/json.hpp"
#include "manifest/text.hpp"

namespace wc::manifest {
namespace {

constexpr std::size_t kLabelDigits = 8;

}  // namespace

Fingerprint raw_fingerprint(std::vector<SourceShard> shards) {
  Fingerprint fingerprint;
  fingerprint.source.shards = std::move(shards);
  return fingerprint;
}

Result<std::string> canonical_json(const Fingerprint& fingerprint) {
  const nlohmann::json document = TRY(document_of(fingerprint));
  std::string text = write_canonical(document);
  if (text.size() <= kMaxFingerprintJsonBytes) return text;
  return fail(Code::invalid_argument, "the fingerprint's document takes {}, at most {}",
              format_bytes(text.size()), format_bytes(kMaxFingerprintJsonBytes));
}

Result<std::string> canonical_json(std::string_view text) {
  const nlohmann::json value = TRY(parse_json(text));
  return write_canonical(value);
}

std::string digest_of(std::string_view canonical) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  XXH128_canonical_t bytes;
  XXH128_canonicalFromHash(&bytes, XXH3_128bits(canonical.data(), canonical.size()));
  std::string digits;
  for (const unsigned char byte : bytes.digest) {
    digits += kDigits[byte >> 4];
    digits += kDigits[byte & 15];
  }
  return digits;
}

Result<std::string> digest_of(const Fingerprint& fingerprint) {
  const std::string text = TRY(canonical_json(fingerprint));
  return digest_of(std::string_view(text));
}

Result<std::string> form_label(const Form& form) {
  const nlohmann::json document = TRY(document_of(form));
  if (form.raw()) return "raw";
  const std::string digest = digest_of(std::string_view(write_canonical(document)));
  std::string label = form.engine;
  if (!form.engine_version.empty()) label += "-" + form.engine_version;
  return label + "-" + digest.substr(0, kLabelDigits);
}

std::string selection_digest(std::span<const SelectedTensor> tensors) {
  std::vector<SelectedTensor> sorted(tensors.begin(), tensors.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& left, const auto& right) {
    return left.tensor != right.tensor ? left.tensor < right.tensor : left.shard < right.shard;
  });
  auto list = nlohmann::json::array();
  for (const SelectedTensor& entry : sorted)
    list.push_back(nlohmann::json::array({entry.tensor, entry.shard}));
  return "xxh3:" + digest_of(std::string_view(write_canonical(list)));
}

}  // namespace wc::manifest
