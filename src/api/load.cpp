// wc_load(): a checkpoint made resident, or found so. The order is that of cost: options, stat
// calls, one question to the daemon; then headers, the right to load, memory, bytes.
#include <chrono>
#include <utility>

#include "api/convert.hpp"
#include "api/guard.hpp"
#include "api/handles.hpp"
#include "api/identity.hpp"
#include "api/load_request.hpp"
#include "api/load_run.hpp"
#include "api/load_source.hpp"
#include "api/progress.hpp"
#include "api/source.hpp"
#include "api/structs.hpp"
#include "client/operations.hpp"

namespace wc::api {
namespace {

using Clock = std::chrono::steady_clock;
using Entry = wire::fb::EntryInfoT;

struct LoadOutcome {
  Entry entry;
  wc_load_info info{};
};

LoadOutcome resident(Entry entry, bool waited = false) {
  LoadOutcome outcome;
  outcome.entry = std::move(entry);
  // A member of a set that lacks others is there, and not yet to be seen.
  outcome.info.outcome = outcome.entry.generation == 0 ? WC_PREPARED : WC_ALREADY_RESIDENT;
  outcome.info.waited = waited ? 1 : 0;
  return outcome;
}

LoadOutcome loaded(LoadRun run) {
  LoadOutcome outcome;
  outcome.entry = std::move(*run.published.entry);
  outcome.info.outcome = static_cast<std::int32_t>(run.published.outcome);
  outcome.info.tier = static_cast<std::int32_t>(run.filled.tier);
  outcome.info.fill_ns = static_cast<std::uint64_t>(run.filled.elapsed.count());
  outcome.info.read_bytes = run.filled.bytes;
  return outcome;
}

Result<client::BeginOptions> begin_options(const wc_connection& connection,
                                           const LoadRequest& request, const LoadSource& source) {
  client::BeginOptions options;
  options.name = source.name;
  std::string device = request.device;
  if (device.empty()) device = TRY(connection.devices->default_id());
  options.device = TRY(connection.devices->open(device));
  options.transport = TRY(transport_of(*options.device, request.transport));
  options.aliases = {weak_receipt_alias(source.survey)};
  options.source = source.path;
  options.address = request.address;
  options.replace = request.replace;
  options.wait = request.wait;
  options.wait_limit = request.wait_limit;
  options.cancellation = request.cancellation;
  return options;
}

// By its receipts alone: nothing is opened. The name that was asked for is adopted where the entry
// has another.
Result<std::optional<Entry>> find_resident(const wc_connection& connection,
                                           const LoadRequest& request, const LoadSource& source) {
  wire::fb::SelectorT selector;
  selector.aliases = lookup_aliases(source.survey);
  selector.form = "raw";
  selector.device = request.device;
  auto found = client::look_up(*connection.session, selector);
  const bool published = found && found->state == wire::fb::State::published;
  if (!published || (request.device.empty() && found->device == "cpu")) return std::nullopt;
  if (request.address != 0 && found->address != request.address) return std::nullopt;  // told later
  if (found->name == source.name) return *std::move(found);

  LoadRequest of_entry = request;
  of_entry.device = found->device;
  auto options = TRY(begin_options(connection, of_entry, source));
  options.aliases = selector.aliases;
  options.wait = false;
  auto begun = client::begin(connection.session, options);
  // Gone since, or somebody's load: the long way will tell.
  if (!begun && begun.error().code == Code::busy) return std::nullopt;
  if (!begun) return Failure(std::move(begun).error());
  auto* adopted = std::get_if<Entry>(&*begun);
  if (adopted == nullptr) return std::nullopt;  // granted; dropping it gives the right back
  return std::move(*adopted);
}

Result<LoadOutcome> load_it(const wc_connection& connection, const LoadRequest& request,
                            const LoadSource& source, ProgressTeller& progress) {
  auto options = TRY(begin_options(connection, request, source));
  const auto opened = TRY(checkpoint::Checkpoint::open(request.source, request.reading));
  load::PlacementOptions placing;
  placing.granularity = options.device->info().granularity_bytes;
  const auto placement = TRY(load::place(opened, placing));

  options.structure = structure_of(opened);
  options.total_bytes = opened.file_bytes();
  options.on_progress = progress.waiting(true);
  if (auto content = content_alias(source.survey); !content.empty())
    options.aliases.push_back(std::move(content));
  auto begun = TRY(client::begin(connection.session, options));
  if (auto* entry = std::get_if<Entry>(&begun))
    return resident(*std::move(entry), progress.waited());

  auto& publication = *std::get<std::unique_ptr<client::Publication>>(begun);
  auto run = TRY(run_load({request, source, opened, placement}, publication, progress));
  return loaded(std::move(run));
}

Result<LoadOutcome> load(const wc_connection& connection, const LoadRequest& request) {
  ProgressTeller progress(request.progress, request.user);
  const auto source = TRY(load_source_of(request));
  if (request.cancellation != nullptr && request.cancellation->is_cancelled())
    return fail(Code::cancelled, "the load of \"{}\" was cancelled", source.name);
  auto entry = TRY(find_resident(connection, request, source));
  if (entry) return resident(*std::move(entry));
  return load_it(connection, request, source, progress);
}

}  // namespace
}  // namespace wc::api

using wc::Result;
using wc::api::give_struct;
using wc::api::guarded;
using wc::api::required;

extern "C" {

int wc_load(wc_connection* connection, const char* source, const wc_load_options* options,
            wc_load_result** out) {
  return guarded([&]() -> Result<> {
    TRY(required(out, "out"));
    *out = nullptr;
    TRY(required(connection, "connection"));
    const auto start = wc::api::Clock::now();
    const auto request = TRY(wc::api::load_request_of(*connection, source, options));
    auto outcome = wc::api::load(*connection, request);
    if (!outcome)
      return wc::Failure(
          std::move(outcome).error().within(wc::format("cannot load \"{}\": ", request.source)));
    outcome->info.total_ns = static_cast<std::uint64_t>((wc::api::Clock::now() - start).count());
    *out = new wc_load_result{std::move(outcome->entry), outcome->info};
    return {};
  });
}

int wc_load_result_info(const wc_load_result* result, wc_load_info* out) {
  return guarded([&]() -> Result<> {
    TRY(required(result, "result"));
    return give_struct(out, result->info, "wc_load_info");
  });
}

int wc_load_result_entry(const wc_load_result* result, wc_entry_info* out) {
  return guarded([&]() -> Result<> {
    TRY(required(result, "result"));
    return give_struct(out, wc::api::view_of(result->entry), "wc_entry_info");
  });
}

void wc_load_result_free(wc_load_result* result) { delete result; }

}  // extern "C"
