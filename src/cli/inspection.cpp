#include "cli/inspection.hpp"

#include "base/units.hpp"
#include "cli/entry_text.hpp"
#include "cli/table.hpp"
#include "cli/text.hpp"

namespace wc::cli {
namespace {

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t size : shape) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text.empty() ? "scalar" : text;
}

std::vector<std::int64_t> shape_of(const std::int64_t* shape, std::uint32_t rank) {
  return rank == 0 ? std::vector<std::int64_t>{} : std::vector<std::int64_t>(shape, shape + rank);
}

Result<std::vector<InspectedTensor>> tensors_of(const CheckpointHandle& checkpoint,
                                                std::size_t count) {
  std::vector<InspectedTensor> tensors;
  tensors.reserve(count);
  for (std::size_t at = 0; at < count; ++at) {
    auto tensor = sized<wc_file_tensor>();
    TRY(check(wc_checkpoint_tensor_at(checkpoint.get(), at, &tensor)));
    tensors.push_back({.name = std::string(tensor.name, tensor.name_bytes),
                       .dtype = or_empty(wc_dtype_name(tensor.dtype)),
                       .shape = shape_of(tensor.shape, tensor.rank),
                       .place = or_empty(tensor.file),
                       .offset = tensor.offset,
                       .bytes = tensor.bytes});
  }
  return tensors;
}

}  // namespace

Result<Inspection> inspect_checkpoint(const std::string& source,
                                      const wc_checkpoint_options& options) {
  const auto checkpoint = TRY(made<CheckpointHandle>(
      [&](wc_checkpoint** out) { return wc_checkpoint_open(source.c_str(), &options, out); }));
  auto info = sized<wc_checkpoint_info>();
  TRY(check(wc_checkpoint_read(checkpoint.get(), &info)));
  Inspection inspection;
  inspection.on_disk = true;
  inspection.tensors = TRY(tensors_of(checkpoint, info.tensors));
  inspection.document = {{"name", or_empty(info.default_name)},
                         {"directory", or_empty(info.directory)},
                         {"files", info.files},
                         {"bytes", info.tensor_bytes},
                         {"file_bytes", info.file_bytes},
                         {"passed_over", info.passed_over}};
  inspection.summary = format("{}: {} in {}, {}\n", printable(or_empty(info.directory)),
                              counted(info.tensors, "tensor"), counted(info.files, "file"),
                              format_bytes(info.tensor_bytes));
  if (info.passed_over > 0) {
    inspection.summary += format("{} of the files are not in the index and are left out\n",
                                 counted(info.passed_over, "tensor"));
  }
  return inspection;
}

Result<Inspection> inspect_attachment(const Attachment& attachment) {
  auto entry = sized<wc_entry_info>();
  TRY(check(wc_attachment_entry(attachment.get(), &entry)));
  Inspection inspection;
  const std::size_t count = wc_attachment_tensor_count(attachment.get());
  inspection.tensors.reserve(count);
  std::uint64_t bytes = 0;
  for (std::size_t at = 0; at < count; ++at) {
    auto tensor = sized<wc_tensor>();
    TRY(check(wc_attachment_tensor_at(attachment.get(), at, &tensor)));
    bytes += tensor.bytes;
    inspection.tensors.push_back({.name = std::string(tensor.name, tensor.name_bytes),
                                  .dtype = or_empty(wc_dtype_name(tensor.dtype)),
                                  .shape = shape_of(tensor.shape, tensor.rank),
                                  .place = format("segment {}", tensor.segment),
                                  .offset = tensor.offset,
                                  .bytes = tensor.bytes});
  }
  inspection.document = identity_json(entry);
  inspection.document.erase("tensors");
  inspection.document["files"] = 0;
  inspection.document["bytes"] = bytes;
  inspection.document["resident_bytes"] = entry.bytes;
  inspection.summary =
      format("{}, generation {}: {}\n", quoted_name(entry), entry.generation, content_text(entry));
  return inspection;
}

Json Inspection::json() const {
  Json whole = document;
  whole["tensors"] = Json::array();
  for (const auto& tensor : tensors) {
    whole["tensors"].push_back({{"name", tensor.name},
                                {"dtype", tensor.dtype},
                                {"shape", tensor.shape},
                                {"file", on_disk ? Json(tensor.place) : Json(nullptr)},
                                {"offset", tensor.offset},
                                {"bytes", tensor.bytes}});
  }
  return whole;
}

std::string Inspection::text(const Terminal& terminal) const {
  Table table({{.title = "TENSOR", .shrinks = true},
               {.title = "DTYPE"},
               {.title = "SHAPE"},
               {.title = "SIZE", .align = Align::right},
               {.title = on_disk ? "FILE" : "SEGMENT", .shrinks = true, .drops = true},
               {.title = "OFFSET", .align = Align::right, .drops = true}});
  for (const auto& tensor : tensors) {
    table.add({{tensor.name},
               {tensor.dtype},
               {shape_text(tensor.shape)},
               {format_bytes(tensor.bytes)},
               {tensor.place},
               {format_count(tensor.offset)}});
  }
  return summary + (tensors.empty() ? "" : table.render(terminal));
}

}  // namespace wc::cli
