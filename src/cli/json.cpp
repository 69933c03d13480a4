#include "cli/json.hpp"

namespace wc::cli {

namespace {

// As text: JSON's readers make floating-point numbers of large integers.
Json address_json(std::uint64_t address) {
  return address == 0 ? Json(nullptr) : Json(format("{:#x}", address));
}

}  // namespace

Json identity_json(const wc_entry_info& entry) {
  return {{"name", or_empty(entry.name)},
          {"form", or_empty(entry.form)},
          {"rank", entry.rank},
          {"world", entry.world},
          {"fingerprint", or_empty(entry.fingerprint)},
          {"generation", entry.generation},
          {"device", or_empty(entry.device)},
          {"transport", wc_transport_name(entry.transport)},
          {"tensors", entry.tensors},
          {"bytes", entry.bytes},
          {"segments", entry.segments},
          {"address", address_json(entry.address)}};
}

Json entry_json(const wc_entry_info& entry) {
  Json document = identity_json(entry);
  document["state"] = wc_state_name(entry.state);
  document["leases"] = entry.leases;
  document["pinned"] = entry.pinned != 0;
  document["source"] = or_empty(entry.source);
  document["since_unix_ns"] = entry.since_unix_ns;
  if (entry.state == WC_LOADING) {
    document["done_bytes"] = entry.done_bytes;
    document["total_bytes"] = entry.total_bytes;
  }
  return document;
}

Json error_json(const Error& error) {
  return {{"code", name_of(error.code)}, {"message", error.message}};
}

std::string dumped(const Json& document) {
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace wc::cli
