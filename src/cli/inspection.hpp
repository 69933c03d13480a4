// A list of tensors, as `inspect` shows it: of a checkpoint on disk or of a resident entry.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/json.hpp"
#include "cli/library.hpp"
#include "cli/terminal.hpp"

namespace wc::cli {

struct InspectedTensor {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::string place;  // the file's name, or "segment 0"
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

struct Inspection {
  std::vector<InspectedTensor> tensors;
  Json document;        // of everything but the tensors
  std::string summary;  // one line
  bool on_disk = false;

  [[nodiscard]] Json json() const;
  [[nodiscard]] std::string text(const Terminal& terminal) const;
};

/// Errors: as wc_checkpoint_open.
[[nodiscard]] Result<Inspection> inspect_checkpoint(const std::string& source,
                                                    const wc_checkpoint_options& options);
/// Errors: io, internal.
[[nodiscard]] Result<Inspection> inspect_attachment(const Attachment& attachment);

}  // namespace wc::cli
