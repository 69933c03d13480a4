// The identity of content: the digest of a canonical JSON document (RFC 8785, integers only) of
// three parts: source, form, partition. Equal fingerprint, equal weights; the same weights spelled
// in another order, or with defaults written out, get the same document. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "manifest/limits.hpp"

namespace wc::manifest {

/// One file of the source.
struct SourceShard {
  std::string name{};       // a plain file name: "model-00001-of-00004.safetensors"
  std::uint64_t bytes = 0;  // its size
  std::string digest{};     // "xxh3t-4m:<32 hex>"
  bool operator==(const SourceShard&) const = default;
};

/// Shards, or a name that the publisher vouches for: exactly one of the two.
struct Source {
  std::vector<SourceShard> shards{};  // in any order; no name twice
  /// Which of the shards' tensors are loaded, where an index takes not all of them:
  /// selection_digest(); empty: all.
  std::string selection{};
  std::string source_id{};
  bool operator==(const Source&) const = default;
};

/// What was made of the source. Without an engine the form is raw (the bytes as they are), and all
/// else must be empty.
struct Form {
  std::string engine{};               // "vllm"; empty: raw
  std::string engine_version{};       // "0.11.0"
  std::string quantization{};         // method: "fp8"; empty: none
  std::string quantization_config{};  // a JSON object, any spelling; empty: none
  std::string dtype{};                // as the engine calls it: "bfloat16"
  std::string device_capability{};    // "9.0"
  std::string extra{};                // a JSON object of further fields, any spelling; empty: none
  [[nodiscard]] bool raw() const { return engine.empty(); }
  bool operator==(const Form&) const = default;
};

/// A position in one dimension of parallelism. Size 1 is none, and is not written.
struct Place {
  std::uint32_t size = 1;
  std::uint32_t rank = 0;  // below size
  bool operator==(const Place&) const = default;
};

struct Partition {
  Place tensor{};
  Place pipeline{};
  Place expert{};
  Place data{};
  bool operator==(const Partition&) const = default;
};

struct Fingerprint {
  Source source{};
  Form form{};
  Partition partition{};
  bool operator==(const Fingerprint&) const = default;
};

/// The raw form of a checkpoint's shards, not parallel.
[[nodiscard]] Fingerprint raw_fingerprint(std::vector<SourceShard> shards);

/// The canonical document. Errors: invalid_argument, naming the field and what is wrong with it.
[[nodiscard]] Result<std::string> canonical_json(const Fingerprint& fingerprint);

/// RFC 8785 of any JSON text: keys in the order of their UTF-16 code units, minimal escapes,
/// integers within +-(2^53 - 1). Errors: invalid_argument (no JSON, a floating-point number, a key
/// twice, nesting past 32, more than 16 MiB), naming the field.
[[nodiscard]] Result<std::string> canonical_json(std::string_view text);

/// From any spelling of the document: absent parts are defaults, "form": "raw" is one of them.
/// What it returns is normal: shards sorted by name, JSON fields canonical. Errors: as above.
[[nodiscard]] Result<Fingerprint> parse_fingerprint(std::string_view text);

/// XXH3-128, 32 lowercase hexadecimal digits.
[[nodiscard]] std::string digest_of(std::string_view canonical);

/// The fingerprint proper: digest_of(canonical_json(fingerprint)).
[[nodiscard]] Result<std::string> digest_of(const Fingerprint& fingerprint);

/// A short text for people and for tables, different for different forms: "raw", or the engine, its
/// version and 8 digits of the form's digest, "vllm-0.11.0-5f3a9c1e". Errors: as canonical_json().
[[nodiscard]] Result<std::string> form_label(const Form& form);

struct SelectedTensor {
  std::string_view tensor;
  std::string_view shard;
};

/// For Source::selection: "xxh3:<32 hex>" of the list, sorted by tensor.
[[nodiscard]] std::string selection_digest(std::span<const SelectedTensor> tensors);

struct Difference {
  std::string field{};     // "form.quantization_config.weight_block_size[0]"
  std::string expected{};  // as JSON; "(absent)"
  std::string actual{};
};

/// Every field in which they differ, sorted by field; empty where the fingerprints are equal.
/// Errors: as canonical_json().
[[nodiscard]] Result<std::vector<Difference>> differences(const Fingerprint& expected,
                                                          const Fingerprint& actual);

/// `form.dtype is "float16", expected "bfloat16"; ...`, the first 16 and the number of the rest.
[[nodiscard]] std::string describe(std::span<const Difference> differences);

}  // namespace wc::manifest
