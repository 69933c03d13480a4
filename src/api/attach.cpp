// Attachments, and everything that is read out of one. Texts and numbers are views of the manifest:
// FlatBuffers ends its strings with a zero, so they are C's as they stand.
#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "api/attachment.hpp"
#include "api/convert.hpp"
#include "api/guard.hpp"
#include "api/structs.hpp"
#include "base/units.hpp"
#include "manifest/selector.hpp"

namespace wc::api {
namespace {

using Clock = std::chrono::steady_clock;

static_assert(static_cast<int>(manifest::Kind::parameter) == WC_PARAMETER);
static_assert(static_cast<int>(manifest::Kind::buffer) == WC_BUFFER);

// Of a FlatBuffers string, absent ones included.
const char* c_text(std::string_view text) { return text.data() == nullptr ? "" : text.data(); }

// Straight into its place: a copy of what was just written member by member costs as much again.
void put_tensor(const wc_attachment& attachment, std::uint32_t index, wc_tensor& out) {
  const manifest::TensorView tensor = attachment.manifest->tensor(index);
  const std::uint64_t address = attachment.segments[tensor.segment] + tensor.offset;
  out.struct_size = sizeof out;
  out.name = tensor.name.data();
  out.name_bytes = tensor.name.size();
  out.shape = tensor.shape.data();
  out.strides = tensor.strides.empty() ? nullptr : tensor.strides.data();
  out.data = reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
  out.bytes = tensor.bytes;
  out.offset = tensor.offset;
  out.segment = tensor.segment;
  out.rank = static_cast<std::uint32_t>(tensor.shape.size());
  out.dtype = static_cast<std::int32_t>(tensor.dtype);
  out.kind = static_cast<std::int32_t>(tensor.kind);
  out.flags = (tensor.persistent ? std::uint32_t{WC_TENSOR_PERSISTENT} : 0) |
              (tensor.requires_grad ? std::uint32_t{WC_TENSOR_REQUIRES_GRAD} : 0);
}

wc_tensor tensor_of(const wc_attachment& attachment, std::uint32_t index) {
  wc_tensor out{};
  put_tensor(attachment, index, out);
  return out;
}

// The elements are shorter or longer than the struct is here, and lie where no wc_tensor may.
void give_other_size(const wc_attachment& attachment, std::uint32_t first, std::uint32_t count,
                     wc_tensor* out) {
  const std::size_t size = out->struct_size;
  auto* at = reinterpret_cast<std::byte*>(out);
  for (std::uint32_t i = 0; i < count; ++i, at += size) {
    wc_tensor tensor = tensor_of(attachment, first + i);
    tensor.struct_size = size;
    std::memcpy(at, &tensor, std::min(size, sizeof tensor));
    if (size > sizeof tensor) std::memset(at + sizeof tensor, 0, size - sizeof tensor);
  }
}

Result<> give_tensors(const wc_attachment& attachment, std::uint32_t first, std::uint32_t count,
                      wc_tensor* out) {
  TRY(check_struct_size(out->struct_size, "wc_tensor"));
  if (out->struct_size != sizeof(wc_tensor)) {
    give_other_size(attachment, first, count, out);
    return {};
  }
  for (std::uint32_t i = 0; i < count; ++i) put_tensor(attachment, first + i, out[i]);
  return {};
}

Failure no_tensor(const wc_attachment& attachment, std::string_view name) {
  const manifest::Manifest& manifest = attachment.inner->manifest();
  std::vector<std::string> names;
  names.reserve(manifest.tensor_count());
  for (std::uint32_t i = 0; i < manifest.tensor_count(); ++i)
    names.emplace_back(manifest.tensor_name(i));
  std::string near;
  for (const std::string& candidate : manifest::nearest(name, names))
    near += format("{}\"{}\"", near.empty() ? "; there is " : ", ", candidate);
  return fail(Code::not_found, "\"{}\" has no tensor \"{}\"{}", attachment.inner->entry().name,
              name, near);
}

Result<> give_names(const wc_attachment& attachment, std::span<char> out, std::size_t& needed) {
  needed = 0;
  const manifest::Manifest& manifest = *attachment.manifest;
  for (std::uint32_t i = 0; i < manifest.tensor_count(); ++i) {
    const std::string_view name = manifest.tensor_name(i);
    if (needed + name.size() + 1 <= out.size()) {
      std::copy(name.begin(), name.end(), out.begin() + static_cast<std::ptrdiff_t>(needed));
      out[needed + name.size()] = '\n';
    }
    needed += name.size() + 1;
  }
  if (out.empty() || needed <= out.size()) return {};
  return fail(Code::invalid_argument, "the names need {} bytes, and there is room for {}",
              format_count(needed), format_count(out.size()));
}

wc_attribute attribute_of(const manifest::AttributeView& attribute) {
  wc_attribute out{};
  out.path = c_text(attribute.path);
  out.name = c_text(attribute.name);
  out.of_tensor = attribute.of_tensor ? 1 : 0;
  out.type = static_cast<std::int32_t>(attribute.value.index()) + WC_VALUE_BOOL;
  if (const auto* flag = std::get_if<bool>(&attribute.value)) out.integer = *flag ? 1 : 0;
  if (const auto* number = std::get_if<std::int64_t>(&attribute.value)) out.integer = *number;
  if (const auto* real = std::get_if<double>(&attribute.value)) out.real = *real;
  if (const auto* text = std::get_if<std::string_view>(&attribute.value)) {
    out.data = c_text(*text);
    out.data_bytes = text->size();
  }
  if (const auto* bytes = std::get_if<std::span<const std::byte>>(&attribute.value)) {
    out.data = bytes->data();
    out.data_bytes = bytes->size();
  }
  return out;
}

wc_provenance provenance_of(const manifest::Manifest& manifest) {
  const manifest::ProvenanceView provenance = manifest.provenance();
  wc_provenance out{};
  out.fingerprint_json = c_text(manifest.fingerprint_json());
  out.publisher = c_text(provenance.publisher);
  out.source = c_text(provenance.source);
  out.command = c_text(provenance.command);
  out.host = c_text(provenance.host);
  out.published_unix_ns = provenance.published_unix_ns;
  out.took_ns = static_cast<std::uint64_t>(std::max<std::int64_t>(provenance.took_ns, 0));
  return out;
}

Result<std::unique_ptr<wc_attachment>> attach_handle(const wc_connection& connection,
                                                     const wc_selector* selector,
                                                     const wc_attach_options* given) {
  const auto start = Clock::now();
  const auto known = TRY(take_struct_or_default(given, "wc_attach_options"));
  AttachRequest request;
  request.wanted = TRY(wanted_of(selector, *connection.devices));
  request.access = known.access;
  request.expect = text_or_empty(known.expect);
  request.wait = duration_of(known.wait_ns);
  request.cancellation = inner(known.cancellation);
  ProgressTeller progress(known.progress, known.user);

  auto made = std::make_unique<wc_attachment>();
  made->inner = TRY(attach(connection, request, progress));
  made->manifest = made->inner->manifest();
  made->segments.reserve(made->inner->segment_count());
  for (std::uint32_t i = 0; i < made->inner->segment_count(); ++i)
    made->segments.push_back(made->inner->segment_address(i));
  made->attach_ns = static_cast<std::uint64_t>((Clock::now() - start).count());
  return made;
}

std::size_t tensor_count(const wc_attachment* attachment) {
  return attachment == nullptr ? 0 : attachment->manifest->tensor_count();
}

}  // namespace
}  // namespace wc::api

using wc::Result;
using wc::api::give_struct;
using wc::api::guarded;
using wc::api::required;

extern "C" {

int wc_attach(wc_connection* connection, const wc_selector* selector,
              const wc_attach_options* options, wc_attachment** out) {
  return guarded([&]() -> Result<> {
    TRY(required(out, "out"));
    *out = nullptr;
    TRY(required(connection, "connection"));
    auto made = TRY(wc::api::attach_handle(*connection, selector, options));
    *out = made.release();
    return {};
  });
}

void wc_detach(wc_attachment* attachment) {
  if (attachment == nullptr) return;
  // A daemon that does not answer has ended the lease, or will: the mappings are gone either way.
  (void)guarded([&]() -> Result<> {
    if (wc_attachment_living(attachment) == 0) (void)attachment->inner->detach();
    return {};
  });
  wc::api::let_go(attachment);
}

int wc_attachment_entry(const wc_attachment* attachment, wc_entry_info* out) {
  return guarded([&]() -> Result<> {
    TRY(required(attachment, "attachment"));
    return give_struct(out, wc::api::view_of(attachment->inner->entry()), "wc_entry_info");
  });
}

uint64_t wc_attachment_attach_ns(const wc_attachment* attachment) {
  return attachment == nullptr ? 0 : attachment->attach_ns;
}

const char* wc_attachment_epoch(const wc_attachment* attachment) {
  return attachment == nullptr ? "" : attachment->inner->daemon().epoch.c_str();
}

size_t wc_attachment_tensor_count(const wc_attachment* attachment) {
  return wc::api::tensor_count(attachment);
}

int wc_attachment_tensor_at(const wc_attachment* attachment, size_t index, wc_tensor* out) {
  if (out != nullptr && out->struct_size == sizeof(wc_tensor) &&
      index < wc::api::tensor_count(attachment)) [[likely]] {
    wc::api::put_tensor(*attachment, static_cast<std::uint32_t>(index), *out);
    return WC_OK;
  }
  return guarded([&]() -> Result<> {
    TRY(required(attachment, "attachment"));
    TRY(wc::api::check_index(index, wc::api::tensor_count(attachment), "tensor", "entry"));
    const auto tensor = wc::api::tensor_of(*attachment, static_cast<std::uint32_t>(index));
    return give_struct(out, tensor, "wc_tensor");
  });
}

int wc_attachment_tensors(const wc_attachment* attachment, size_t first, size_t count,
                          wc_tensor* out) {
  return guarded([&]() -> Result<> {
    TRY(required(attachment, "attachment"));
    const std::size_t all = wc::api::tensor_count(attachment);
    if (first > all || count > all - first)
      return wc::fail(wc::Code::invalid_argument, "{} tensors from {} on: the entry has {}",
                      wc::format_count(count), wc::format_count(first), wc::format_count(all));
    if (count == 0) return {};
    TRY(required(out, "out"));
    return wc::api::give_tensors(*attachment, static_cast<std::uint32_t>(first),
                                 static_cast<std::uint32_t>(count), out);
  });
}

int wc_attachment_tensor(const wc_attachment* attachment, const char* name, wc_tensor* out) {
  return guarded([&]() -> Result<> {
    TRY(required(attachment, "attachment"));
    TRY(required(name, "name"));
    const auto found = attachment->inner->manifest().find(name);
    if (!found) return wc::api::no_tensor(*attachment, name);
    return give_struct(out, wc::api::tensor_of(*attachment, *found), "wc_tensor");
  });
}

int wc_attachment_find(const wc_attachment* attachment, const char* name, size_t* index) {
  return guarded([&]() -> Result<> {
    TRY(required(attachment, "attachment"));
    TRY(required(name, "name"));
    TRY(required(index, "index"));
    const auto found = attachment->manifest->find(name);
    if (!found) return wc::api::no_tensor(*attachment, name);
    *index = *found;
    return {};
  });
}

int wc_attachment_names(const wc_attachment* attachment, char* out, size_t capacity,
                        size_t* bytes) {
  return guarded([&]() -> Result<> {
    TRY(required(attachment, "attachment"));
    TRY(required(bytes, "bytes"));
    return wc::api::give_names(*attachment, std::span(out, out == nullptr ? 0 : capacity), *bytes);
  });
}

size_t wc_attachment_segment_count(const wc_attachment* attachment) {
  return attachment == nullptr ? 0 : attachment->segments.size();
}

int wc_attachment_segment_at(const wc_attachment* attachment, size_t index, wc_segment* out) {
  return guarded([&]() -> Result<> {
    TRY(required(attachment, "attachment"));
    TRY(wc::api::check_index(index, attachment->segments.size(), "segment", "entry"));
    const auto at = static_cast<std::uint32_t>(index);
    const auto described = attachment->inner->manifest().segments()[at];
    wc_segment segment{};
    segment.data = reinterpret_cast<void*>(static_cast<std::uintptr_t>(attachment->segments[at]));
    segment.bytes = attachment->inner->segment_bytes(at);
    segment.digest = wc::api::c_text(described.digest);
    return give_struct(out, segment, "wc_segment");
  });
}

size_t wc_attachment_attribute_count(const wc_attachment* attachment) {
  return attachment == nullptr ? 0 : attachment->inner->manifest().attributes().size();
}

int wc_attachment_attribute_at(const wc_attachment* attachment, size_t index, wc_attribute* out) {
  return guarded([&]() -> Result<> {
    TRY(required(attachment, "attachment"));
    const auto attributes = attachment->inner->manifest().attributes();
    TRY(wc::api::check_index(index, attributes.size(), "attribute", "entry"));
    const auto attribute = wc::api::attribute_of(attributes[static_cast<std::uint32_t>(index)]);
    return give_struct(out, attribute, "wc_attribute");
  });
}

int wc_attachment_provenance(const wc_attachment* attachment, wc_provenance* out) {
  return guarded([&]() -> Result<> {
    TRY(required(attachment, "attachment"));
    return give_struct(out, wc::api::provenance_of(attachment->inner->manifest()), "wc_provenance");
  });
}

}  // extern "C"
