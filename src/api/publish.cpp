// Publishing what somebody made: the C border of wc_publication.
#include <cstring>
#include <utility>

#include <nlohmann/json.hpp>

#include "api/gate.hpp"
#include "api/guard.hpp"
#include "api/handles.hpp"
#include "api/process.hpp"
#include "api/progress.hpp"
#include "api/publication.hpp"
#include "api/structs.hpp"
#include "base/units.hpp"
#include "manifest/fingerprint.hpp"

namespace wc::api {
namespace {

constexpr std::uint32_t kTensorFlags = WC_TENSOR_PERSISTENT | WC_TENSOR_REQUIRES_GRAD;

struct Identity {
  manifest::Fingerprint fingerprint;
  std::string canonical;
  std::string digest;
  std::string form;  // "raw", or the canonical JSON of the document's form
};

Result<Identity> identity_of(const char* document) {
  Identity identity;
  identity.fingerprint = TRY(manifest::parse_fingerprint(document));
  identity.canonical = TRY(manifest::canonical_json(identity.fingerprint));
  identity.digest = manifest::digest_of(identity.canonical);
  identity.form = "raw";
  if (!identity.fingerprint.form.raw()) {
    const auto whole = nlohmann::json::parse(identity.canonical, nullptr, false);
    identity.form = TRY(manifest::canonical_json(whole.at("form").dump()));
  }
  return identity;
}

Result<client::BeginOptions> begin_options(const wc_connection& connection,
                                           const wc_publish_options& known,
                                           const Identity& identity) {
  client::BeginOptions options;
  options.name = known.name;
  options.form = identity.form;
  options.rank = known.rank;
  options.world = known.world == 0 ? 1 : known.world;
  std::string device = "cpu";
  if (known.device != nullptr) device = TRY(connection.devices->id_of(known.device));
  options.device = TRY(connection.devices->open(device));
  options.transport =
      TRY(transport_of(*options.device, std::string(text_or_empty(known.transport))));
  options.fingerprint = identity.digest;
  options.total_bytes = known.total_bytes;
  TRY(check_address(known.address));
  options.address = known.address;
  options.source = text_or_empty(known.source);
  options.replace = known.replace != 0;
  options.wait = known.no_wait == 0;
  if (known.wait_ns != 0) options.wait_limit = duration_of(known.wait_ns);
  options.cancellation = inner(known.cancellation);
  return options;
}

manifest::ProvenanceOptions provenance_of(const wc_publish_options& known) {
  manifest::ProvenanceOptions provenance;
  provenance.publisher = known.publisher == nullptr ? program_name() : std::string(known.publisher);
  provenance.source = text_or_empty(known.source);
  provenance.command = command_line();
  provenance.host = host_name();
  return provenance;
}

// Nothing where the content is resident already.
Result<std::unique_ptr<wc_publication>> begin(const wc_connection& connection,
                                              const wc_publish_options* given) {
  const auto known = TRY(take_struct(given, "wc_publish_options"));
  TRY(required(known.name, "name"));
  TRY(required(known.fingerprint, "fingerprint"));
  const auto identity = TRY(identity_of(known.fingerprint));
  TRY(check_gate(identity.canonical, manifest::GatePlace::publish));
  ProgressTeller progress(known.progress, known.user);
  auto options = TRY(begin_options(connection, known, identity));
  options.on_progress = progress.waiting();
  manifest::Builder builder;
  TRY(builder.set_fingerprint(identity.fingerprint));

  auto begun = TRY(client::begin(connection.session, options));
  auto* granted = std::get_if<std::unique_ptr<client::Publication>>(&begun);
  if (granted == nullptr) return nullptr;
  auto made = std::make_unique<wc_publication>(std::move(*granted), std::move(builder));
  made->fingerprint = identity.digest;
  made->provenance = provenance_of(known);
  return made;
}

Result<> check_usable(const wc_publication* publication) {
  TRY(required(publication, "publication"));
  if (publication->over) return fail(Code::invalid_argument, "the publication is over");
  return {};
}

Result<manifest::TensorOptions> tensor_of(const wc_tensor_description* given) {
  const auto known = TRY(take_struct(given, "wc_tensor_description"));
  TRY(required(known.name, "name"));
  if (known.rank > 0) TRY(required(known.shape, "shape"));
  const auto dtype = dtype_numbered(static_cast<unsigned>(known.dtype));
  const auto wrong = [&](std::string_view what, auto number) {
    return fail(Code::invalid_argument, "tensor \"{}\": there is no {} {}", known.name, what,
                number);
  };
  if (!dtype) return wrong("dtype", known.dtype);
  if (known.kind != WC_PARAMETER && known.kind != WC_BUFFER) return wrong("kind", known.kind);
  if ((known.flags & ~kTensorFlags) != 0) return wrong("flag", known.flags & ~kTensorFlags);
  manifest::TensorOptions tensor;
  tensor.name = known.name;
  tensor.dtype = *dtype;
  tensor.shape = {known.shape, known.rank};
  if (known.strides != nullptr) tensor.strides = {known.strides, known.rank};
  tensor.segment = known.segment;
  tensor.offset = known.offset;
  tensor.kind = static_cast<manifest::Kind>(known.kind);
  tensor.persistent = (known.flags & WC_TENSOR_PERSISTENT) != 0;
  tensor.requires_grad = (known.flags & WC_TENSOR_REQUIRES_GRAD) != 0;
  return tensor;
}

Result<manifest::Value> value_of(const wc_attribute& given) {
  if (given.data_bytes > 0) TRY(required(given.data, "data"));
  switch (given.type) {
    case WC_VALUE_BOOL:
      return given.integer != 0;
    case WC_VALUE_INT:
      return given.integer;
    case WC_VALUE_FLOAT:
      return given.real;
    case WC_VALUE_TEXT:
      return std::string(static_cast<const char*>(given.data), given.data_bytes);
    case WC_VALUE_BYTES: {
      const auto* bytes = static_cast<const std::byte*>(given.data);
      return std::vector<std::byte>(bytes, bytes + given.data_bytes);
    }
    default:
      return fail(Code::invalid_argument, "attribute \"{}\": there is no type {}", given.name,
                  given.type);
  }
}

Result<manifest::AttributeOptions> attribute_of(const wc_attribute* given) {
  const auto known = TRY(take_struct(given, "wc_attribute"));
  TRY(required(known.path, "path"));
  TRY(required(known.name, "name"));
  manifest::AttributeOptions attribute;
  attribute.path = known.path;
  attribute.name = known.name;
  attribute.of_tensor = known.of_tensor != 0;
  attribute.value = TRY(value_of(known));
  return attribute;
}

std::unique_ptr<wc_load_result> result_of(wire::fb::PublishedT published,
                                          std::chrono::nanoseconds took) {
  auto result = std::make_unique<wc_load_result>();
  result->entry = std::move(*published.entry);
  result->info = {};
  result->info.outcome = static_cast<std::int32_t>(published.outcome);
  result->info.total_ns = static_cast<std::uint64_t>(took.count());
  return result;
}

}  // namespace
}  // namespace wc::api

using wc::Result;
using wc::api::check_usable;
using wc::api::guarded;
using wc::api::required;

extern "C" {

int wc_publication_begin(wc_connection* connection, const wc_publish_options* options,
                         wc_publication** out) {
  return guarded([&]() -> Result<> {
    TRY(required(out, "out"));
    *out = nullptr;
    TRY(required(connection, "connection"));
    auto made = TRY(wc::api::begin(*connection, options));
    *out = made.release();
    return {};
  });
}

int wc_publication_reserve(wc_publication* publication, uint64_t bytes, uint32_t* segment,
                           void** address) {
  return guarded([&]() -> Result<> {
    TRY(check_usable(publication));
    const auto reserved = TRY(wc::api::reserve(*publication, bytes));
    if (segment != nullptr) *segment = reserved.index;
    if (address != nullptr) *address = reserved.address;
    return {};
  });
}

int wc_publication_write(wc_publication* publication, uint32_t segment, uint64_t offset,
                         const void* data, uint64_t bytes) {
  return guarded([&]() -> Result<> {
    TRY(check_usable(publication));
    if (bytes > 0) TRY(required(data, "data"));
    return wc::api::write(*publication, {segment, offset},
                          {static_cast<const std::byte*>(data), bytes});
  });
}

int wc_publication_tensor(wc_publication* publication, const wc_tensor_description* tensor) {
  return guarded([&]() -> Result<> {
    TRY(check_usable(publication));
    const auto options = TRY(wc::api::tensor_of(tensor));
    return wc::api::add_tensor(*publication, options);
  });
}

int wc_publication_attribute(wc_publication* publication, const wc_attribute* attribute) {
  return guarded([&]() -> Result<> {
    TRY(check_usable(publication));
    const auto options = TRY(wc::api::attribute_of(attribute));
    return publication->builder.set_attribute(options);
  });
}

int wc_publication_progress(wc_publication* publication, uint64_t done_bytes,
                            uint64_t total_bytes) {
  return guarded([&]() -> Result<> {
    TRY(check_usable(publication));
    publication->inner->report_progress(done_bytes, total_bytes);
    return {};
  });
}

int wc_publication_publish(wc_publication* publication, wc_load_result** out) {
  return guarded([&]() -> Result<> {
    if (out != nullptr) *out = nullptr;
    TRY(check_usable(publication));
    auto published = TRY(wc::api::publish(*publication));
    const auto took = std::chrono::steady_clock::now() - publication->start;
    if (out != nullptr) *out = wc::api::result_of(std::move(published), took).release();
    return {};
  });
}

void wc_publication_free(wc_publication* publication) { delete publication; }

int wc_fingerprint(const char* document, char out[33]) {
  return guarded([&]() -> Result<> {
    TRY(required(document, "document"));
    TRY(required(out, "out"));
    const auto fingerprint = TRY(wc::manifest::parse_fingerprint(document));
    const auto digest = TRY(wc::manifest::digest_of(fingerprint));
    std::memcpy(out, digest.c_str(), digest.size() + 1);
    return {};
  });
}

}  // extern "C"
