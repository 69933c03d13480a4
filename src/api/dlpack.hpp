// An attachment's tensors as DLPack's managed tensors. Each keeps the attachment; deleters are code
// of this library, which is never unloaded (its link says so), so that a framework may call them
// whenever it likes, the interpreter's end included.
#pragma once

#include <cstddef>
#include <span>

#include "weightcache/weightcache.h"

#include "api/dlpack_abi.hpp"
#include "base/result.hpp"

namespace wc::api {

/// Tensors from `first` on, as many as there is room for. `options` is whole. Errors:
/// invalid_argument (past the last tensor), unsupported (no form in bytes); nothing is made then.
[[nodiscard]] Result<> make_dlpack(const wc_attachment& attachment,
                                   const wc_dlpack_options& options, std::size_t first,
                                   std::span<void*> out);

/// Sees whether a tensor is deleted by the thread that watches it: a consumer that fails may have
/// done so or not. One at a time in a thread.
class DeletionWatch {
 public:
  explicit DeletionWatch(const void* managed);
  DeletionWatch(const DeletionWatch&) = delete;
  DeletionWatch& operator=(const DeletionWatch&) = delete;
  ~DeletionWatch();
  [[nodiscard]] bool deleted() const;
};

}  // namespace wc::api
