// Texts that say what an entry is: JSON, fingerprints, selectors, the gate's configuration. What is
// accepted is a fixed point: its canonical form gives itself.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "manifest/fingerprint.hpp"
#include "manifest/quantization.hpp"
#include "manifest/selector.hpp"

namespace {

void expect(bool holds) {
  if (!holds) std::abort();
}

void try_json(std::string_view text) {
  const auto canonical = wc::manifest::canonical_json(text);
  if (!canonical) return;
  const auto again = wc::manifest::canonical_json(std::string_view(*canonical));
  expect(again && *again == *canonical);
}

void try_fingerprint(std::string_view text) {
  const auto parsed = wc::manifest::parse_fingerprint(text);
  if (!parsed) return;
  const auto canonical = wc::manifest::canonical_json(*parsed);
  expect(canonical.has_value());
  const auto again = wc::manifest::parse_fingerprint(*canonical);
  expect(again && *again == *parsed);
  expect(wc::manifest::differences(*parsed, *again)->empty());
}

void try_selector(std::string_view text) {
  const auto selector = wc::manifest::parse_selector(text);
  if (!selector) return;
  const auto again = wc::manifest::parse_selector(wc::manifest::to_string(*selector));
  expect(again && *again == *selector);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try_json(text);
  try_fingerprint(text);
  try_selector(text);
  (void)wc::manifest::quantization_verdict({.method = "fp8", .config = text});
  return 0;
}
