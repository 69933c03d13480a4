// What a reader or an operator names an entry with, on its way from the ABI to the daemon. A text
// that can only be a path becomes the aliases of the checkpoint's files; one that names no entry,
// but a checkpoint here, is taken as its path.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "weightcache/weightcache.h"

#include "api/device.hpp"
#include "base/result.hpp"
#include "wire/codec.hpp"

namespace wc::api {

struct Wanted {
  wire::fb::SelectorT selector;
  std::string path;       // what it was made from; empty: no path
  std::string else_path;  // to be tried as a path where the name is not found
};

/// Errors: invalid_argument; as checkpoint::survey() for a path; as Devices::id_of().
[[nodiscard]] Result<Wanted> wanted_of(const wc_selector* given, Devices& devices);

/// NULL and an empty text select everything.
[[nodiscard]] Result<Wanted> wanted_or_all(const wc_selector* given, Devices& devices);

/// The same entry by the path of its checkpoint; nothing where that names none.
[[nodiscard]] std::optional<Wanted> as_path(const Wanted& wanted);

/// `not_found` of a path, in words that say what was looked for.
[[nodiscard]] Error not_resident(const Wanted& wanted, Error error);

/// Runs `call` on the selector, and once more on its path where the name is not found.
template <typename Call>
auto with_selector(const Wanted& wanted, Call&& call) -> decltype(call(wanted.selector)) {
  auto result = call(wanted.selector);
  if (result || result.error().code != Code::not_found) return result;
  if (!wanted.path.empty()) return Failure(not_resident(wanted, std::move(result).error()));
  const std::optional<Wanted> path = as_path(wanted);
  if (!path) return result;
  auto second = call(path->selector);
  if (second || second.error().code != Code::not_found) return second;
  return Failure(not_resident(*path, std::move(second).error()));
}

}  // namespace wc::api
