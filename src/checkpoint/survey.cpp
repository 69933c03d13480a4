#include "checkpoint/survey.hpp"

#include <algorithm>
#include <utility>

#include "checkpoint/claim.hpp"
#include "checkpoint/listing.hpp"
#include "checkpoint/source.hpp"
#include "checkpoint/text.hpp"

namespace wc::checkpoint {
namespace {

Result<SurveyedFile> look_at(const Beneath& folder, const std::string& name) {
  const Receipt receipt = TRY(folder.receipt_of_file(name));
  return SurveyedFile{name, receipt, claimed_sha256(folder, name, receipt)};
}

// Beside an index, a file that can't be had may well be one that the index does not name: opening
// tells. Its presence is surveyed, with a receipt that no file has.
Result<SurveyedFile> look_at_other(const Beneath& folder, const std::string& name) {
  auto file = look_at(folder, name);
  const bool had =
      file || (file.error().code != Code::not_found && file.error().code != Code::denied &&
               file.error().code != Code::corrupt);
  if (had) return file;
  return SurveyedFile{name, {}, {}};
}

Result<std::vector<SurveyedFile>> look_at_folder(const Beneath& folder) {
  const Listing listing = TRY(list_folder(folder.folder()));
  std::vector<SurveyedFile> files;
  if (!listing.has_index) {
    auto chosen = choose_shards(listing);
    if (!chosen) {
      return Failure(std::move(chosen).error().within(in_quotes(folder.folder()) + ": "));
    }
    for (const std::string& name : *chosen) {
      SurveyedFile file = TRY(look_at(folder, name));
      files.push_back(std::move(file));
    }
    return files;
  }
  SurveyedFile index = TRY(look_at(folder, std::string(kIndexName)));
  files.push_back(std::move(index));
  for (const std::string& name : listing.shards) {
    SurveyedFile file = TRY(look_at_other(folder, name));
    files.push_back(std::move(file));
  }
  std::sort(files.begin(), files.end(),
            [](const auto& left, const auto& right) { return left.name < right.name; });
  return files;
}

}  // namespace

Result<Survey> survey(const std::string& source, const OpenOptions& options) {
  const Source resolved = TRY(resolve(source, options));
  Survey seen;
  seen.directory = resolved.folder.folder();
  seen.default_name = resolved.default_name;
  if (resolved.file.empty()) {
    seen.files = TRY(look_at_folder(resolved.folder));
  } else {
    SurveyedFile file = TRY(look_at(resolved.folder, resolved.file));
    seen.files.push_back(std::move(file));
  }
  return seen;
}

}  // namespace wc::checkpoint
