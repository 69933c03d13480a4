#include "api/selector.hpp"

#include "api/guard.hpp"
#include "api/source.hpp"
#include "api/structs.hpp"
#include "manifest/selector.hpp"

namespace wc::api {
namespace {

Result<> take_path(const std::string& path, Wanted& wanted) {
  const auto survey = TRY(checkpoint::survey(expand_home(path)));
  wanted.selector.aliases = lookup_aliases(survey);
  wanted.path = path;
  return {};
}

Result<> take_text(std::string_view text, Wanted& wanted) {
  using Kind = manifest::Selector::Kind;
  auto read = manifest::parse_selector(text);
  if (!read) {  // no name, yet perhaps a path: "models/org/name"
    if (take_path(std::string(text), wanted)) return {};
    return Failure(std::move(read).error());
  }
  manifest::Selector& parsed = *read;
  switch (parsed.kind) {
    case Kind::path:
      return take_path(parsed.text, wanted);
    case Kind::fingerprint:
      wanted.selector.fingerprint = std::move(parsed.text);
      return {};
    case Kind::name:
      wanted.selector.name = std::move(parsed.text);
      wanted.selector.generation = parsed.generation.value_or(0);
      if (!parsed.generation) wanted.else_path = wanted.selector.name;
      return {};
  }
  return fail(Code::internal, "a selector of unknown kind");
}

Result<Wanted> take(const wc_selector& given, Devices& devices) {
  Wanted wanted;
  const std::string_view text = text_or_empty(given.text);
  if (!text.empty()) TRY(take_text(text, wanted));
  wanted.selector.form = text_or_empty(given.form);
  wanted.selector.device = TRY(devices.id_of(std::string(text_or_empty(given.device))));
  wanted.selector.rank = given.rank;
  wanted.selector.world = given.world;
  return wanted;
}

}  // namespace

Result<Wanted> wanted_of(const wc_selector* given, Devices& devices) {
  const auto known = TRY(take_struct(given, "wc_selector"));
  if (text_or_empty(known.text).empty())
    return fail(Code::invalid_argument, "the selector's text is empty: name an entry");
  return take(known, devices);
}

Result<Wanted> wanted_or_all(const wc_selector* given, Devices& devices) {
  const auto known = TRY(take_struct_or_default(given, "wc_selector"));
  return take(known, devices);
}

std::optional<Wanted> as_path(const Wanted& wanted) {
  if (wanted.else_path.empty()) return std::nullopt;
  Wanted path;
  if (!take_path(wanted.else_path, path)) return std::nullopt;
  path.selector.form = wanted.selector.form;
  path.selector.device = wanted.selector.device;
  path.selector.rank = wanted.selector.rank;
  path.selector.world = wanted.selector.world;
  return path;
}

Error not_resident(const Wanted& wanted, Error error) {
  error.message = format("the checkpoint \"{}\" is not resident: load it first", wanted.path);
  return error;
}

}  // namespace wc::api
