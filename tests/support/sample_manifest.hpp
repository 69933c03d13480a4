// A valid manifest over segments of given sizes, for tests that publish without a checkpoint.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "manifest/builder.hpp"
#include "manifest/fingerprint.hpp"

namespace wc::support {

struct SampleManifest {
  std::vector<std::byte> bytes;
  std::string fingerprint;
};

struct SampleOptions {
  std::string source = "sample";          // other sources are other content
  std::vector<std::uint64_t> segments;    // sizes, each at least 512 times its tensors
  std::uint32_t tensors_per_segment = 1;  // of 256 bytes each
};

inline SampleManifest sample_manifest(const SampleOptions& options) {
  manifest::Fingerprint identity;
  identity.source.source_id = options.source;
  manifest::Builder builder;
  const std::vector<std::int64_t> shape = {256};
  for (std::uint32_t segment = 0; segment < options.segments.size(); ++segment) {
    manifest::SegmentOptions added;
    added.bytes = options.segments[segment];
    added.used_bytes = added.bytes;
    EXPECT_TRUE(builder.add_segment(added));
    for (std::uint32_t count = 0; count < options.tensors_per_segment; ++count) {
      const std::string name = format("layers.{}.weight.{}", segment, count);
      manifest::TensorOptions tensor;
      tensor.name = name;
      tensor.shape = shape;
      tensor.segment = segment;
      tensor.offset = std::uint64_t{512} * count;
      const auto index = builder.add_tensor(tensor);
      EXPECT_TRUE(index) << index.error().message;
    }
  }
  EXPECT_TRUE(builder.set_fingerprint(identity));
  const auto bytes = builder.finish();
  const auto fingerprint = manifest::digest_of(identity);
  if (!bytes || !fingerprint) {
    ADD_FAILURE() << (bytes ? fingerprint.error().message : bytes.error().message);
    return {};
  }
  return {*bytes, *fingerprint};
}

}  // namespace wc::support
