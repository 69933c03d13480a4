// Manifest::check in two parts: what every reader needs (check.cpp), and what the daemon's helper
// adds at publication (check_full.cpp). Inside this folder only.
#pragma once

#include <span>

#include "base/result.hpp"
#include "manifest/manifest.hpp"
#include "manifest/records.hpp"

namespace wc::manifest {

/// Makes the Manifest, the only one who can.
class Checker {
 public:
  [[nodiscard]] static Result<Manifest> run(std::span<const std::byte> buffer, bool full);
};

/// Rules that no reader's memory depends on. `manifest` has passed the others.
[[nodiscard]] Result<> check_meaning(const Manifest& manifest, const Pools& pools,
                                     std::span<const fb::TensorRecord> records);

// Rules shared with the builder; `code` is whose fault it is. Each error begins with what it is of.
[[nodiscard]] Result<> check_segment(Code code, std::uint32_t index, const SegmentView& segment);
[[nodiscard]] Result<> check_segment_text(Code code, std::uint32_t index,
                                          const SegmentView& segment);
[[nodiscard]] Result<> check_addresses(Code code, std::span<const SegmentView> segments);
[[nodiscard]] Result<> check_file(Code code, const FileView& file);
[[nodiscard]] Result<> check_attribute(Code code, const AttributeView& attribute);
[[nodiscard]] Result<> check_tensor_name(Code code, std::string_view name);

/// `attribute "x" of tensor "y"`.
[[nodiscard]] std::string describe(const AttributeView& attribute);

}  // namespace wc::manifest
