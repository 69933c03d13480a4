// What wc_publication is: the right to fill an entry, and the manifest that grows meanwhile.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "weightcache/weightcache.h"

#include "base/result.hpp"
#include "client/publication.hpp"
#include "manifest/builder.hpp"
#include "memory/device.hpp"

struct wc_publication {
  wc_publication(std::unique_ptr<wc::client::Publication> granted, wc::manifest::Builder described)
      : inner(std::move(granted)), builder(std::move(described)) {}

  std::unique_ptr<wc::client::Publication> inner;
  wc::manifest::Builder builder;
  std::unordered_set<std::string> names;  // of its tensors: one twice is refused at once
  wc::manifest::ProvenanceOptions provenance;
  std::string fingerprint;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  bool over = false;

  std::mutex mutex;                                               // of what follows
  std::vector<std::unique_ptr<wc::memory::Writer>> idle_writers;  // go before the views
};

namespace wc::api {

/// A further segment. Errors: as client::Publication::reserve(), and the builder's.
struct ReservedSegment {
  std::uint32_t index = 0;
  void* address = nullptr;
};
[[nodiscard]] Result<ReservedSegment> reserve(wc_publication& publication, std::uint64_t bytes);

/// Errors: the builder's; invalid_argument (the name is taken).
[[nodiscard]] Result<> add_tensor(wc_publication& publication,
                                  const manifest::TensorOptions& tensor);

struct Place {
  std::uint32_t segment = 0;
  std::uint64_t offset = 0;
};
/// From host memory to its place; threads may call it together. Errors: invalid_argument (past the
/// segment's end), device.
[[nodiscard]] Result<> write(wc_publication& publication, const Place& to,
                             std::span<const std::byte> bytes);

/// The one atomic step. Errors: as client::Publication::publish(), and the builder's.
[[nodiscard]] Result<wire::fb::PublishedT> publish(wc_publication& publication);

}  // namespace wc::api
