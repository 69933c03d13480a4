#include "checkpoint/checkpoint.hpp"

#include <algorithm>
#include <memory_resource>
#include <new>
#include <optional>
#include <utility>

#include "base/units.hpp"
#include "checkpoint/json.hpp"
#include "checkpoint/listing.hpp"
#include "checkpoint/shard_index.hpp"
#include "checkpoint/shard_loader.hpp"
#include "checkpoint/source.hpp"
#include "checkpoint/text.hpp"

namespace wc::checkpoint {

struct Checkpoint::State {
  explicit State(Source source)
      : folder(std::move(source.folder)),
        directory(folder.folder()),
        default_name(std::move(source.default_name)) {}

  void add(std::string name, LoadedShard loaded);

  Beneath folder;
  std::string directory;
  std::string default_name;
  std::vector<Shard> shards;
  // What names, shapes and metadata of each shard stand in.
  std::vector<std::unique_ptr<std::pmr::monotonic_buffer_resource>> arenas;
  std::vector<Tensor> tensors;
  std::uint64_t tensor_bytes = 0;
  std::uint64_t file_bytes = 0;
};

namespace {

Result<ShardIndex> read_index(const Beneath& folder) {
  const std::string name(kIndexName);
  const OpenedFile file = TRY(folder.open_file(name));
  const auto read = [&]() -> Result<ShardIndex> {
    if (file.receipt.size_bytes > kMaxIndexBytes) {
      return fail(Code::corrupt, "the index is {} bytes long ({} at most)",
                  format_count(file.receipt.size_bytes), format_count(kMaxIndexBytes));
    }
    auto json = std::make_unique<JsonBuffer>();
    TRY(read_at(file.fd, json->resize(file.receipt.size_bytes), 0));
    return ShardIndex::parse(std::move(json));
  };
  auto index = read();
  if (!index) return Failure(std::move(index).error().within(in_quotes(name) + ": "));
  return index;
}

// A numbered set without an index: nothing says which of two would be meant.
Result<> no_name_in_two_shards(std::span<const std::string> names,
                               std::span<const LoadedShard> shards) {
  if (shards.size() < 2) return {};
  std::vector<HashedName> all;
  for (std::size_t at = 0; at < shards.size(); ++at) {
    for (HashedName name : shards[at].header.names) {
      name.at = static_cast<std::uint32_t>(at);
      all.push_back(name);
    }
  }
  const HashedName* twice = sort_and_find_twice(all);
  if (twice == nullptr) return {};
  const auto [first, second] = std::minmax(twice[0].at, twice[1].at);
  return fail(Code::corrupt, "{}: tensor {}: {} has it too, and no index says which one counts",
              in_quotes(names[second]), in_quotes(twice->name), in_quotes(names[first]));
}

// Which shards there are, and where an index said so, it.
struct Plan {
  std::vector<std::string> names;
  std::optional<ShardIndex> index;
};

Result<Plan> plan_of(const Beneath& folder, const std::string& file) {
  Plan plan;
  if (!file.empty()) {
    plan.names.push_back(file);
    return plan;
  }
  const Listing listing = TRY(list_folder(folder.folder()));
  if (listing.has_index) {
    plan.index = TRY(read_index(folder));
    plan.names = plan.index->shards();
    return plan;
  }
  auto chosen = choose_shards(listing);
  if (!chosen) {
    return Failure(std::move(chosen).error().within(in_quotes(folder.folder()) + ": "));
  }
  plan.names = std::move(*chosen);
  return plan;
}

}  // namespace

void Checkpoint::State::add(std::string name, LoadedShard loaded) {
  const auto number = static_cast<std::uint32_t>(shards.size());
  const Header& header = loaded.header;
  std::uint32_t passed_over = 0;
  for (std::size_t at = 0; at < header.tensors.size(); ++at) {
    if (!loaded.wanted.empty() && !loaded.wanted[at]) {
      ++passed_over;
      continue;
    }
    const HeaderTensor& tensor = header.tensors[at];
    const std::uint64_t bytes = tensor.end - tensor.begin;
    tensors.push_back({tensor.name, tensor.dtype, tensor.shape, number,
                       header.data_offset + tensor.begin, bytes});
    tensor_bytes += bytes;
  }
  file_bytes += loaded.file.receipt.size_bytes;
  shards.push_back({.name = std::move(name),
                    .fd = std::move(loaded.file.fd),
                    .receipt = loaded.file.receipt,
                    .data_offset = header.data_offset,
                    .metadata = std::move(loaded.header.metadata),
                    .tensors = static_cast<std::uint32_t>(header.tensors.size()),
                    .passed_over = passed_over,
                    .trailing_bytes = header.trailing_bytes});
  arenas.push_back(std::move(loaded.header.arena));
}

Result<Checkpoint> Checkpoint::open_resolved(std::unique_ptr<State> state, const std::string& file,
                                             const OpenOptions& options) {
  const Plan plan = TRY(plan_of(state->folder, file));
  const ShardIndex* index = plan.index ? &*plan.index : nullptr;
  auto loaded = TRY(load_shards(state->folder, plan.names, index, options));
  if (index == nullptr) TRY(no_name_in_two_shards(plan.names, loaded));
  std::size_t tensors = 0;
  for (const LoadedShard& shard : loaded) tensors += shard.header.tensors.size();
  state->tensors.reserve(tensors);
  for (std::size_t at = 0; at < loaded.size(); ++at) {
    state->add(plan.names[at], std::move(loaded[at]));
  }
  return Checkpoint(std::move(state));
}

Result<Checkpoint> Checkpoint::open(const std::string& source, const OpenOptions& options) {
  try {
    Source resolved = TRY(resolve(source, options));
    const std::string file = resolved.file;
    return open_resolved(std::make_unique<State>(std::move(resolved)), file, options);
  } catch (const std::bad_alloc&) {
    return fail(Code::exhausted, "{}: no memory to read the headers", in_quotes(source));
  }
}

Checkpoint::Checkpoint(std::unique_ptr<State> state) : state_(std::move(state)) {}
Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&&) noexcept = default;
Checkpoint::~Checkpoint() = default;

std::span<const Tensor> Checkpoint::tensors() const { return state_->tensors; }
std::span<const Shard> Checkpoint::shards() const { return state_->shards; }
const std::string& Checkpoint::directory() const { return state_->directory; }
const std::string& Checkpoint::default_name() const { return state_->default_name; }
std::uint64_t Checkpoint::tensor_bytes() const { return state_->tensor_bytes; }
std::uint64_t Checkpoint::file_bytes() const { return state_->file_bytes; }

Result<> Checkpoint::unchanged() const {
  for (const Shard& shard : state_->shards) {
    const auto changed = [&shard](std::string_view how) {
      return fail(Code::corrupt, "{}: it changed after it was opened: {}", in_quotes(shard.name),
                  how);
    };
    const Receipt now = TRY(receipt_of(shard.fd));
    if (now != shard.receipt) return changed(difference(shard.receipt, now));
    // The open file may be as it was, and another one stand in its place.
    const auto there = state_->folder.receipt_of_file(shard.name);
    if (!there) return changed(there.error().message);
    if (*there != shard.receipt) return changed(difference(shard.receipt, *there));
  }
  return {};
}

}  // namespace wc::checkpoint
