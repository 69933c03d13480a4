// The checkpoint that a load is of, from the first look at its files to the proof that they are the
// ones that were read.
#pragma once

#include <string>
#include <vector>

#include "api/load_request.hpp"
#include "base/result.hpp"
#include "checkpoint/survey.hpp"

namespace wc::api {

/// Known after a few stat calls.
struct LoadSource {
  checkpoint::Survey survey;
  std::string name;  // to be published under
  std::string path;  // absolute, for people and for verify: what to open to find the same again
};

/// Errors: as checkpoint::survey(); invalid_argument (the checkpoint's own name can't be one).
[[nodiscard]] Result<LoadSource> load_source_of(const LoadRequest& request);

/// The files are still those of the survey, none more and none less. Errors: corrupt, naming the
/// first that is not.
[[nodiscard]] Result<> check_unchanged(const LoadSource& source, const LoadRequest& request);

}  // namespace wc::api
