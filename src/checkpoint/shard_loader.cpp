#include "checkpoint/shard_loader.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "checkpoint/text.hpp"

namespace wc::checkpoint {
namespace {

constexpr unsigned kMaxThreads = 8;
constexpr std::size_t kFirstBytes = 4096;

Result<Header> read_header(const OpenedFile& file, HeaderParser& parser, const HeaderRules& rules) {
  const std::uint64_t file_bytes = file.receipt.size_bytes;
  std::array<char, kFirstBytes> room = {};
  const std::span first(room.data(), std::min<std::uint64_t>(file_bytes, room.size()));
  TRY(read_at(file.fd, first, 0));
  const std::uint64_t length = TRY(header_length(std::as_bytes(first), file_bytes));
  const auto start = first.subspan(kLengthBytes, std::min(length, first.size() - kLengthBytes));
  TRY(check_header_start({start.data(), start.size()}, rules));
  const std::span<char> header = parser.room(length);
  std::copy(start.begin(), start.end(), header.begin());
  TRY(read_at(file.fd, header.subspan(start.size()), kLengthBytes + start.size()));
  return parser.parse_room(file_bytes, rules);
}

class Loading {
 public:
  Loading(const Beneath& folder, std::span<const std::string> names, const ShardIndex* index,
          const OpenOptions& options)
      : folder_(folder),
        names_(names),
        index_(index),
        rules_{.compat = options.compat, .allow_trailing = options.allow_trailing},
        results_(names.size()) {}

  void run(unsigned threads) {
    std::vector<std::jthread> others;
    for (unsigned at = 1; at < threads; ++at) {
      try {
        others.emplace_back([this] { work(); });
      } catch (const std::system_error&) {
        break;  // no more threads to be had: those that run do the work
      }
    }
    work();
  }

  Result<std::vector<LoadedShard>> take() && {
    std::vector<LoadedShard> loaded;
    loaded.reserve(results_.size());
    for (auto& result : results_) {
      if (!result) return fail(Code::exhausted, "no memory to read the shards' headers");
      if (!*result) return Failure(std::move(*result).error());
      loaded.push_back(std::move(**result));
    }
    return loaded;
  }

 private:
  void work() {
    try {
      HeaderParser parser;
      while (!failed_) {
        const std::size_t at = next_++;
        if (at >= names_.size()) return;
        results_[at] = load(at, parser);
        if (!*results_[at]) failed_ = true;
      }
    } catch (const std::bad_alloc&) {
      failed_ = true;  // take() tells it
    }
  }

  Result<LoadedShard> load(std::size_t at, HeaderParser& parser) const {
    LoadedShard shard;
    shard.file = TRY(folder_.open_file(names_[at]));
    auto header = read_header(shard.file, parser, rules_);
    if (!header) {
      return Failure(std::move(header).error().within(in_quotes(names_[at]) + ": "));
    }
    shard.header = std::move(*header);
    if (index_ == nullptr) return shard;
    shard.wanted.resize(shard.header.tensors.size());
    const auto* absent = mark_wanted(shard.header.names, index_->tensors_of(at), shard.wanted);
    if (absent != nullptr) {
      return fail(Code::corrupt,
                  "{}: tensor {}: the index says that it is in this file, which has no such tensor",
                  in_quotes(names_[at]), in_quotes(absent->name));
    }
    return shard;
  }

  const Beneath& folder_;
  std::span<const std::string> names_;
  const ShardIndex* index_;
  HeaderRules rules_;
  std::vector<std::optional<Result<LoadedShard>>> results_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> failed_ = false;
};

}  // namespace

Result<std::vector<LoadedShard>> load_shards(const Beneath& folder,
                                             std::span<const std::string> names,
                                             const ShardIndex* index, const OpenOptions& options) {
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  const unsigned wanted = options.threads != 0 ? options.threads : std::min(cores, kMaxThreads);
  Loading loading(folder, names, index, options);
  loading.run(static_cast<unsigned>(std::min<std::size_t>(wanted, names.size())));
  return std::move(loading).take();
}

}  // namespace wc::checkpoint
