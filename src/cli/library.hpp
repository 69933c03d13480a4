// The C library as the verbs use it: its handles as owners with one clean-up each, its return codes
// as Results. No thread rule beyond the library's own.
#pragma once

#include <memory>
#include <utility>

#include "weightcache/weightcache.h"

#include "base/result.hpp"

namespace wc::cli {

template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* handle) const {
    Free(handle);
  }
};

using Connection = std::unique_ptr<wc_connection, Freed<wc_connection_free>>;
using Cancellation = std::unique_ptr<wc_cancellation, Freed<wc_cancellation_free>>;
using EntryList = std::unique_ptr<wc_entry_list, Freed<wc_entry_list_free>>;
using Attachment = std::unique_ptr<wc_attachment, Freed<wc_detach>>;
using LoadResult = std::unique_ptr<wc_load_result, Freed<wc_load_result_free>>;
using Verification = std::unique_ptr<wc_verification, Freed<wc_verification_free>>;
using LeaseList = std::unique_ptr<wc_lease_list, Freed<wc_lease_list_free>>;
using Status = std::unique_ptr<wc_status, Freed<wc_status_free>>;
using Diagnosis = std::unique_ptr<wc_diagnosis, Freed<wc_diagnosis_free>>;
using CheckpointHandle = std::unique_ptr<wc_checkpoint, Freed<wc_checkpoint_free>>;

/// The calling thread's last failure.
[[nodiscard]] Failure last_failure();

/// Of a call that returns no handle: check(wc_pin(...)).
[[nodiscard]] inline Result<> check(int code) {
  if (code == WC_OK) return {};
  return last_failure();
}

/// Of a call whose last parameter is the handle: made<EntryList>([&](auto** out) { ... }).
template <typename Owner, typename Function>
[[nodiscard]] Result<Owner> made(Function&& call) {
  typename Owner::pointer handle = nullptr;
  if (std::forward<Function>(call)(&handle) != WC_OK) return last_failure();
  return Owner(handle);
}

/// From now on the library's warnings and errors go to stderr: "weightcache: warning: ...".
void show_warnings();

/// A struct of the library, zero but for its size.
template <typename T>
[[nodiscard]] T sized() {
  T made{};
  made.struct_size = sizeof(T);
  return made;
}

/// A text of the library, which may be NULL.
[[nodiscard]] inline const char* or_empty(const char* text) { return text != nullptr ? text : ""; }

}  // namespace wc::cli
