// For tests and fuzz targets: a manifest that has one of everything, and a walk that follows every
// index of a manifest and computes each tensor's place anew, in its own way.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "manifest/builder.hpp"
#include "manifest/manifest.hpp"

namespace wc::manifest {

inline const std::string kSampleDigest = "xxh3t-4m:00112233445566778899aabbccddeeff";

inline Fingerprint sample_fingerprint() {
  return raw_fingerprint({{"model.safetensors", 65536, kSampleDigest}});
}

/// Tensors "scale" (a scalar), "empty" (a dimension of zero), "w" (2 x 3, in a file), "w.view" (its
/// second column), "w.tied" (the same bytes), "slice" (a view of what is not published), "packed"
/// (4-bit); two segments, a file, an attribute of each type.
inline Builder sample_builder() {
  Builder builder;
  bool good = builder.add_segment({4096, 3000, kSampleDigest, 0x200000000, 1}).has_value();
  good &= builder.add_segment({8192, 8192, "", 0, 0}).has_value();
  good &= builder.add_file({"model.safetensors", 65536, kSampleDigest, 1, 2, 3, 4}).has_value();
  const std::array<std::int64_t, 2> matrix = {2, 3};
  const std::array<std::int64_t, 1> column = {2};
  const std::array<std::int64_t, 1> column_stride = {3};
  const std::array<std::int64_t, 2> nothing = {0, 7};
  const auto add = [&](const TensorOptions& tensor) {
    good &= builder.add_tensor(tensor).has_value();
  };
  add({.name = "w",
       .dtype = Dtype::f32,
       .shape = matrix,
       .offset = 512,
       .file = 0,
       .file_offset = 100});
  add({.name = "w.view",
       .dtype = Dtype::f32,
       .shape = column,
       .strides = column_stride,
       .offset = 516});
  add({.name = "w.tied",
       .dtype = Dtype::f32,
       .shape = matrix,
       .offset = 512,
       .requires_grad = true});
  add({.name = "scale",
       .dtype = Dtype::f64,
       .offset = 1024,
       .kind = Kind::buffer,
       .persistent = false});
  add({.name = "empty", .dtype = Dtype::i64, .shape = nothing, .segment = 1, .offset = 8192});
  add({.name = "slice",
       .dtype = Dtype::bf16,
       .shape = column,
       .segment = 1,
       .offset = 6,
       .view = true});
  add({.name = "packed", .dtype = Dtype::f4, .shape = column, .segment = 1, .offset = 1024});
  good &= builder.set_attribute({"", "seed", false, std::int64_t{-7}}).has_value();
  good &= builder.set_attribute({"w", "marked", true, true}).has_value();
  good &= builder.set_attribute({"w", "alpha", true, 0.5}).has_value();
  good &= builder.set_attribute({"mlp", "act", false, std::string("gelu")}).has_value();
  good &= builder.set_attribute({"mlp", "raw", false, std::vector<std::byte>(3, std::byte{9})})
              .has_value();
  good &= builder.set_fingerprint(sample_fingerprint()).has_value();
  builder.set_provenance({"weightcache 0.1.0", "/models/m", "weightcache load", "host", 5, 6});
  return good ? std::move(builder) : Builder();
}

/// Bytes in memory of exactly their size, on a multiple of 16: a sanitizer sees the first one past.
inline std::vector<std::byte> exact_copy(std::span<const std::byte> bytes) {
  return {bytes.begin(), bytes.end()};
}

__extension__ typedef unsigned __int128 Wide;  // ISO C++ has no name for it

// Where the furthest element ends, in wide arithmetic; nothing where it can't be said.
inline std::optional<Wide> end_of(const TensorView& tensor) {
  Wide elements = 1;
  Wide last = 0;
  for (const std::int64_t size : tensor.shape) {
    if (size < 0) return std::nullopt;
    elements = std::min<Wide>(elements * static_cast<std::uint64_t>(size), ~0ULL);
  }
  if (elements == 0) return tensor.offset;
  for (std::size_t at = 0; at < tensor.strides.size(); ++at) {
    if (tensor.strides[at] < 0) return std::nullopt;
    last +=
        static_cast<Wide>(tensor.shape[at] - 1) * static_cast<std::uint64_t>(tensor.strides[at]);
  }
  const Wide span = tensor.strides.empty() ? elements : last + 1;
  return tensor.offset + (span * bits_of(tensor.dtype) + 7) / 8;
}

/// Reads every byte that the manifest leads to, and returns what is wrong with it; empty: nothing.
class Walk {
 public:
  explicit Walk(const Manifest& manifest) : manifest_(manifest) {}

  [[nodiscard]] std::string run() {
    for (std::uint32_t at = 0; at < manifest_.tensor_count(); ++at) visit(at);
    for (const SegmentView segment : manifest_.segments()) read(segment.digest);
    for (const FileView file : manifest_.files()) {
      read(file.name);
      read(file.digest);
    }
    for (const AttributeView attribute : manifest_.attributes()) {
      read(attribute.path);
      read(attribute.name);
      read(attribute.value);
      for (const AttributeView same : manifest_.attributes_of(attribute.path)) read(same.name);
    }
    const ProvenanceView from = manifest_.provenance();
    for (const std::string_view text : {from.publisher, from.source, from.command, from.host,
                                        manifest_.fingerprint(), manifest_.fingerprint_json()})
      read(text);
    if (sum_ == 1) problem_ += " ";  // keeps the reads from being optimised away
    return problem_;
  }

 private:
  void read(std::string_view text) {
    for (const char byte : text) sum_ += static_cast<unsigned char>(byte);
  }
  void read(const ValueView& value) {
    if (const auto* text = std::get_if<std::string_view>(&value)) read(*text);
    if (const auto* bytes = std::get_if<std::span<const std::byte>>(&value))
      for (const std::byte byte : *bytes) sum_ += std::to_integer<std::uint64_t>(byte);
  }
  void visit(std::uint32_t index) {
    const TensorView tensor = manifest_.tensor(index);
    read(tensor.name);
    for (const std::int64_t size : tensor.shape) sum_ += static_cast<std::uint64_t>(size);
    const auto found = manifest_.find(tensor.name);
    if (found && manifest_.tensor_name(*found) != tensor.name) problem_ = "find gives another";
    read(manifest_.tensor_name(manifest_.by_name(index)));
    if (tensor.segment >= manifest_.segments().size()) {
      problem_ = "no such segment";
      return;
    }
    const SegmentView segment = manifest_.segments()[tensor.segment];
    const auto end = end_of(tensor);
    if (!end || *end > segment.used_bytes || segment.used_bytes > segment.bytes)
      problem_ = "a tensor ends outside its segment";
    else if (*end != static_cast<Wide>(tensor.offset) + tensor.bytes)
      problem_ = "bytes are not what shape and dtype take";
    if (tensor.file && *tensor.file >= manifest_.files().size()) problem_ = "no such file";
  }

  Manifest manifest_;
  std::uint64_t sum_ = 0;
  std::string problem_;
};

}  // namespace wc::manifest
