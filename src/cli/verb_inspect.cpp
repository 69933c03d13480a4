#include <filesystem>
#include <memory>

#include "cli/call.hpp"
#include "cli/inspection.hpp"
#include "cli/selection.hpp"
#include "cli/verb.hpp"

namespace wc::cli {
namespace {

struct Asked {
  Selection selection;
  bool compat = false;
  bool allow_trailing = false;
  bool follow_symlinks = false;
};

bool looks_like_a_path(std::string_view text) {
  for (const std::string_view start : {"/", "./", "../", "~"}) {
    if (text.starts_with(start)) return true;
  }
  return text == "." || text == ".." || text.ends_with(".safetensors");
}

Result<Inspection> inspect_resident(const Asked& asked, const Call& call) {
  const auto connection = TRY(call.connect());
  const wc_selector selector = asked.selection.selector();
  const auto attachment = TRY(made<Attachment>(
      [&](wc_attachment** out) { return wc_attach(connection.get(), &selector, nullptr, out); }));
  return inspect_attachment(attachment);
}

Result<Inspection> inspect(const Asked& asked, const Call& call) {
  wc_checkpoint_options options = WC_CHECKPOINT_OPTIONS_INIT;
  options.compat = asked.compat ? 1 : 0;
  options.allow_trailing = asked.allow_trailing ? 1 : 0;
  options.follow_symlinks = asked.follow_symlinks ? 1 : 0;
  const std::string& text = asked.selection.text;
  if (looks_like_a_path(text)) return inspect_checkpoint(text, options);
  auto resident = inspect_resident(asked, call);
  if (resident) return resident;
  // No entry has the name, or there is nobody to ask: the disk may have it.
  const Code why = resident.error().code;
  if (why != Code::not_found && why != Code::disconnected) return resident;
  auto checkpoint = inspect_checkpoint(text, options);
  if (checkpoint || checkpoint.error().code != Code::not_found) return checkpoint;
  return fail(Code::not_found, "\"{}\" is no checkpoint on disk ({}) and no entry ({})", text,
              checkpoint.error().message, resident.error().message);
}

}  // namespace

Verb inspect_verb() {
  auto asked = std::make_shared<Asked>();
  Verb verb{.name = "inspect", .summary = "list the tensors of a checkpoint or an entry"};
  verb.description =
      "For a path: opens the checkpoint on disk, checks every header, and lists its tensors with "
      "type, shape, size, file and offset. No daemon is needed and no weight is read.\n\n"
      "For a name: lists the tensors of the resident entry, or, if there is none, of the "
      "checkpoint "
      "on disk that the name stands for.";
  verb.examples = {{"weightcache inspect ./Llama-3-8B", "a checkpoint on disk"},
                   {"weightcache inspect Llama-3-8B", "a resident entry"}};
  add_selection(verb.options, asked->selection, "A checkpoint's path, or an entry").completes =
      Completes::entry_or_path;
  verb.options.flag("--compat", asked->compat, "Read the files as load --compat does");
  verb.options.flag("--allow-trailing", asked->allow_trailing,
                    "Accept bytes behind the last tensor of a file");
  verb.options.flag("--follow-symlinks", asked->follow_symlinks,
                    "Follow links that leave the checkpoint's directory");
  verb.run = [asked](Call& call) -> Result<> {
    const auto inspection = TRY(inspect(*asked, call));
    return call.answer(call.common().json ? inspection.json() : Json(),
                       call.common().json ? "" : inspection.text(call.out()));
  };
  return verb;
}

}  // namespace wc::cli
