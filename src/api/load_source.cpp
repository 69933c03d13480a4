#include "api/load_source.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "manifest/selector.hpp"

namespace wc::api {
namespace {

std::string absolute_path(const std::string& source, const checkpoint::Survey& survey) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(source, error)) return survey.directory;
  const std::filesystem::path name = std::filesystem::path(source).filename();
  return (std::filesystem::path(survey.directory) / name).string();
}

const checkpoint::SurveyedFile* find(const checkpoint::Survey& survey, const std::string& name) {
  const auto at = std::ranges::find(survey.files, name, &checkpoint::SurveyedFile::name);
  return at == survey.files.end() ? nullptr : &*at;
}

}  // namespace

Result<LoadSource> load_source_of(const LoadRequest& request) {
  LoadSource source;
  source.survey = TRY(checkpoint::survey(request.source, request.reading));
  source.path = absolute_path(request.source, source.survey);
  source.name = request.name.empty() ? source.survey.default_name : request.name;
  if (auto valid = manifest::valid_name(source.name); !valid)
    return Failure(std::move(valid).error().within("choose another name: "));
  return source;
}

Result<> check_unchanged(const LoadSource& source, const LoadRequest& request) {
  const auto now = TRY(checkpoint::survey(request.source, request.reading));
  for (const auto& file : source.survey.files) {
    const auto* found = find(now, file.name);
    if (found == nullptr)
      return fail(Code::corrupt, "\"{}\" was removed while the checkpoint was read", file.name);
    const std::string difference = checkpoint::difference(file.receipt, found->receipt);
    if (!difference.empty())
      return fail(Code::corrupt, "\"{}\" changed while the checkpoint was read: {}", file.name,
                  difference);
  }
  for (const auto& file : now.files) {
    if (find(source.survey, file.name) == nullptr)
      return fail(Code::corrupt,
                  "the directory changed while the checkpoint was read: \"{}\" is new", file.name);
  }
  return {};
}

}  // namespace wc::api
