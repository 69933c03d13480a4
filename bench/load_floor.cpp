#include "bench/load_floor.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <thread>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.hpp"

namespace wc::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kAlignment = 4096;

struct Stretch {
  std::size_t file = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t place = 0;  // from the first file's first byte
};

std::vector<Stretch> stretches_of(std::span<const FloorFile> files, std::uint64_t read_bytes) {
  std::vector<Stretch> all;
  std::uint64_t before = 0;
  for (std::size_t n = 0; n < files.size(); ++n) {
    for (std::uint64_t at = 0; at < files[n].bytes; at += read_bytes) {
      all.push_back({n, at, std::min(read_bytes, files[n].bytes - at), before + at});
    }
    before += files[n].bytes;
  }
  return all;
}

void read_stretch(FdView fd, const Stretch& stretch, std::byte* to, bool direct) {
  // Direct reads want whole sectors; the end of the file then comes short.
  std::uint64_t wanted = stretch.bytes;
  if (direct) wanted = (wanted + kAlignment - 1) / kAlignment * kAlignment;
  std::uint64_t done = 0;
  while (done < stretch.bytes) {
    const ssize_t got =
        ::pread(fd.get(), to + done, wanted - done, static_cast<off_t>(stretch.offset + done));
    if (got <= 0) {
      std::cerr << "pread failed\n";
      std::exit(1);
    }
    done += static_cast<std::uint64_t>(got);
  }
}

// In huge pages, so that a direct read is few, long requests.
std::byte* make_buffer(std::uint64_t bytes) {
  constexpr std::uint64_t kHugePage = std::uint64_t{2} << 20;
  auto* const buffer = static_cast<std::byte*>(std::aligned_alloc(kHugePage, bytes));
  (void)::madvise(buffer, bytes, MADV_HUGEPAGE);
  std::fill_n(buffer, bytes, std::byte{});
  return buffer;
}

Seconds read_all(std::span<const FloorFile> files, std::byte* memory, const FloorOptions& options) {
  std::vector<Fd> fds;
  for (const auto& file : files) {
    const int flags = O_RDONLY | O_CLOEXEC | (options.direct ? O_DIRECT : 0);
    fds.emplace_back(::open(file.path.c_str(), flags));
  }
  const auto stretches = stretches_of(files, options.read_bytes);
  std::atomic<std::size_t> next = 0;
  const auto begin = Clock::now();
  {
    std::vector<std::jthread> threads;
    for (unsigned n = 0; n < options.threads; ++n) {
      threads.emplace_back([&] {
        std::byte* const buffer = memory != nullptr ? nullptr : make_buffer(options.read_bytes);
        for (std::size_t at = next++; at < stretches.size(); at = next++) {
          const Stretch& stretch = stretches[at];
          std::byte* const to = memory != nullptr ? memory + stretch.place : buffer;
          read_stretch(fds[stretch.file], stretch, to, options.direct);
        }
        std::free(buffer);
      });
    }
  }
  return Clock::now() - begin;
}

}  // namespace

Seconds read_into_memory(std::span<const FloorFile> files, std::byte* memory,
                         const FloorOptions& options) {
  return read_all(files, memory, options);
}

Seconds read_away(std::span<const FloorFile> files, const FloorOptions& options) {
  return read_all(files, nullptr, options);
}

void drop_caches(std::span<const FloorFile> files) {
  for (const auto& file : files) {
    const Fd fd(::open(file.path.c_str(), O_RDONLY | O_CLOEXEC));
    ::fdatasync(fd.get());
    ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  }
}

}  // namespace wc::bench
