// Any bytes as a manifest: refused, or everything in it can be followed (testing.hpp's walk); and
// what passes the full check passes the reader's too.
#include <cstdint>
#include <cstdlib>

#include "manifest/testing.hpp"

namespace {

void expect(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = wc::manifest::exact_copy(std::as_bytes(std::span(data, size)));
  const auto quick = wc::manifest::Manifest::check(bytes, {.full = false});
  const auto full = wc::manifest::Manifest::check(bytes);
  expect(quick.has_value() || !full.has_value());
  if (!quick) {
    expect(quick.error().code == wc::Code::corrupt);
    return 0;
  }
  expect(wc::manifest::Walk(*quick).run().empty());
  if (!full) return 0;
  for (std::uint32_t at = 0; at < full->tensor_count(); ++at)
    expect(full->find(full->tensor_name(at)) == at);
  return 0;
}
