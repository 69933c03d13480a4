#include "load/open_files.hpp"

#include <algorithm>
#include <utility>

#include <fcntl.h>

namespace wc::load {

OpenFile::OpenFile(FileCalls& calls, const checkpoint::Shard& shard, Fd buffered)
    : calls_(&calls),
      shard_(&shard),
      buffered_(std::move(buffered)),
      lease_(calls, buffered_),
      in_memory_(is_in_memory(buffered_)) {}

Result<> OpenFile::check_lease() const {
  if (!lease_.broken()) return {};
  return fail(Code::corrupt, "\"{}\" was opened for writing while it was read", name());
}

Result<OpenFile::Direct> OpenFile::direct() {
  const std::scoped_lock lock(mutex_);
  if (!direct_) {
    const auto limits = direct_limits(buffered_);
    if (!limits) return fail(Code::unsupported, "\"{}\" takes no direct reads", name());
    direct_ = TRY(calls_->reopen(buffered_, O_DIRECT));
    limits_ = *limits;
  }
  return Direct{.fd = direct_, .limits = limits_};
}

void OpenFile::advise_sequential() {
  const std::scoped_lock lock(mutex_);
  if (std::exchange(advised_, true)) return;
  (void)::posix_fadvise(buffered_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
}

void OpenFile::drop_cached(std::uint64_t offset, std::uint64_t bytes) const {
  (void)::posix_fadvise(buffered_.get(), static_cast<off_t>(offset), static_cast<off_t>(bytes),
                        POSIX_FADV_DONTNEED);
}

Result<OpenFiles> OpenFiles::open(FileCalls& calls, const checkpoint::Checkpoint& checkpoint) {
  OpenFiles files;
  for (const checkpoint::Shard& shard : checkpoint.shards()) {
    auto own = calls.reopen(shard.fd, 0);
    // Without /proc the checkpoint's own open file has to serve.
    if (!own) own = TRY(duplicate(shard.fd));
    files.files_.push_back(std::make_unique<OpenFile>(calls, shard, std::move(*own)));
  }
  return files;
}

bool OpenFiles::all_leased() const {
  return std::ranges::all_of(files_, [](const auto& file) { return file->leased(); });
}

Result<> OpenFiles::check_leases() const {
  for (const auto& file : files_) TRY(file->check_lease());
  return {};
}

}  // namespace wc::load
