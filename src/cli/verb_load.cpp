#include <algorithm>
#include <chrono>
#include <memory>
#include <string>

#include "base/units.hpp"
#include "cli/call.hpp"
#include "cli/entry_text.hpp"
#include "cli/text.hpp"
#include "cli/verb.hpp"

namespace wc::cli {
namespace {

using std::chrono::nanoseconds;

struct Asked {
  std::string source;
  std::string name;
  std::string device;
  std::string transport;
  std::string tier = "auto";
  std::uint64_t address = 0;
  nanoseconds timeout = kNoLimit;
  std::uint32_t threads = 0;
  bool replace = false;
  bool no_wait = false;
  bool compat = false;
  bool allow_trailing = false;
  bool follow_symlinks = false;
  bool no_digest = false;
};

constexpr std::string_view kTiers[] = {"auto", "hot", "direct_uring", "direct", "buffered"};

std::int32_t tier_numbered(std::string_view name) {
  std::int32_t number = WC_TIER_AUTO;
  for (const auto& known : kTiers) {
    if (known == name) break;
    ++number;
  }
  return number;
}

const char* or_null(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

wc_load_options options_of(const Asked& asked) {
  wc_load_options options = WC_LOAD_OPTIONS_INIT;
  options.name = or_null(asked.name);
  options.device = or_null(asked.device);
  options.transport = or_null(asked.transport);
  options.replace = asked.replace ? 1 : 0;
  options.no_wait = asked.no_wait ? 1 : 0;
  options.compat = asked.compat ? 1 : 0;
  options.allow_trailing = asked.allow_trailing ? 1 : 0;
  options.follow_symlinks = asked.follow_symlinks ? 1 : 0;
  options.no_digest = asked.no_digest ? 1 : 0;
  options.tier = tier_numbered(asked.tier);
  options.threads = asked.threads;
  options.address = asked.address;
  // To the library 0 is no limit; to people it is no waiting.
  options.wait_ns = static_cast<std::uint64_t>(std::max(asked.timeout, nanoseconds(1)).count());
  return options;
}

std::string_view tier_name(std::int32_t tier) {
  const auto at = static_cast<std::size_t>(tier);
  return tier >= 0 && at < std::size(kTiers) ? kTiers[at] : "unknown";
}

Json document_of(const wc_load_info& load, const wc_entry_info& entry) {
  Json document = identity_json(entry);
  document["seconds"] = seconds_of(load.total_ns);
  document["outcome"] = wc_outcome_name(load.outcome);
  document["waited"] = load.waited != 0;
  document["read_bytes"] = load.read_bytes;
  document["read_seconds"] = seconds_of(load.fill_ns);
  document["tier"] = tier_name(load.tier);
  return document;
}

std::string text_of(const wc_load_info& load, const wc_entry_info& entry) {
  const std::string took = format_duration(nanoseconds(load.total_ns));
  const std::string name = printable(or_empty(entry.name));
  if (load.outcome == WC_ALREADY_RESIDENT) {
    const char* const how = load.waited != 0      ? "another process loaded it meanwhile"
                            : load.read_bytes > 0 ? "the same bytes were there"
                                                  : "nothing was read";
    return format("{} is resident already ({}): {}, {}\n", quoted_name(entry), how,
                  content_text(entry), took);
  }
  const std::string rate = format_rate(load.read_bytes, nanoseconds(load.fill_ns));
  std::string text = format("loaded {} in {}: {}, read at {}\n", quoted_name(entry), took,
                            content_text(entry), rate);
  text +=
      load.outcome == WC_PREPARED
          ? format("prepared: it is published when all {} ranks are there\n", entry.world)
          : format("generation {}; read it with: weightcache attach {}\n", entry.generation, name);
  return text;
}

Result<> run(const Asked& asked, Call& call) {
  const auto connection = TRY(call.connect());
  LoadResult result;
  {
    Progress progress = call.progress("loading");
    wc_load_options options = options_of(asked);
    options.progress = Progress::show;
    options.user = &progress;
    options.cancellation = call.signals().cancellation();
    result = TRY(made<LoadResult>([&](wc_load_result** out) {
      return wc_load(connection.get(), asked.source.c_str(), &options, out);
    }));
  }
  auto load = sized<wc_load_info>();
  auto entry = sized<wc_entry_info>();
  TRY(check(wc_load_result_info(result.get(), &load)));
  TRY(check(wc_load_result_entry(result.get(), &entry)));
  return call.answer(document_of(load, entry), text_of(load, entry));
}

void add_options(Options& options, Asked& asked) {
  options
      .argument(
          "SOURCE", asked.source,
          "A checkpoint: a directory, a .safetensors file, or org/name in the local hub cache")
      .completes = Completes::path;
  options.text("--name", "NAME", asked.name,
               "What to publish it as (default: org/name of a hub checkpoint, else the name of the "
               "directory or file)");
  options.flag(
      "--replace", asked.replace,
      "If other content has the name, publish a new generation beside it; readers keep the "
      "old one until they detach");
  options.text(
      "--device", "DEVICE", asked.device,
      "Where to: cpu, cuda:N or a GPU's UUID (default: the only GPU, or cpu where there is "
      "none)");
  options.text(
      "--transport", "NAME", asked.transport,
      "How other processes get it: host_fd of cpu, vmm_fd of a GPU (default: the device's)");
  options.address("--address", asked.address,
                  "Where every process maps it, a multiple of 2 MiB, for engines that keep raw "
                  "addresses, as in captured graphs (default: wherever there is room); a process "
                  "in which that address is taken can't attach");
  options.flag("--no-wait", asked.no_wait,
               "If another process is loading it, fail with busy instead of waiting");
  options.duration("--timeout", asked.timeout,
                   "How long to wait for another process that loads it (default: without limit)");
  options.choice(
      "--tier", {std::begin(kTiers), std::end(kTiers)}, asked.tier,
      "How to read the files (default: auto, by what the disk and the page cache offer)");
  options.number("--threads", asked.threads, "How many threads read (default: chosen)");
  options.flag("--no-digest", asked.no_digest,
               "Read without digesting: faster where the processor is the limit; the entry is then "
               "known by its files' names, sizes and times, not by their content");
  options.flag("--compat", asked.compat,
               "Accept headers that the format allows and strict reading refuses");
  options.flag("--allow-trailing", asked.allow_trailing,
               "Accept bytes behind the last tensor of a file");
  options.flag("--follow-symlinks", asked.follow_symlinks,
               "Follow links that leave the checkpoint's directory");
}

}  // namespace

Verb load_verb() {
  auto asked = std::make_shared<Asked>();
  Verb verb{.name = "load", .summary = "make a checkpoint resident and publish it"};
  verb.description =
      "Reads a checkpoint's .safetensors files into memory that the daemon keeps, and publishes it "
      "under a name. From then on any process attaches to it in milliseconds, without reading or "
      "copying anything.\n\n"
      "If the same files are resident already, the answer comes at once: nothing is read. If "
      "another process is loading them, this one waits for it. Ctrl-C gives the memory back; "
      "nothing half-loaded is ever published.";
  verb.examples = {
      {"weightcache load ./Llama-3-8B", "publish it as \"Llama-3-8B\""},
      {"weightcache load ./Llama-3-8B-v2 --name Llama-3-8B --replace", "publish new weights"},
      {"weightcache load ./Llama-3-8B --address 0x200000000000", "at one address everywhere"},
      {"weightcache load org/model --device cpu --json", "for a script"},
  };
  add_options(verb.options, *asked);
  verb.run = [asked](Call& call) { return run(*asked, call); };
  return verb;
}

}  // namespace wc::cli
