#include "load/file_reader.hpp"

#include <chrono>
#include <thread>

#include "base/units.hpp"

namespace wc::load {
namespace {

// Takes bytes that were read off the front of the places.
std::span<iovec> skip_bytes(std::span<iovec> places, std::size_t bytes) {
  while (!places.empty() && bytes >= places.front().iov_len) {
    bytes -= places.front().iov_len;
    places = places.subspan(1);
  }
  if (bytes > 0) {
    iovec& first = places.front();
    first.iov_base = static_cast<std::byte*>(first.iov_base) + bytes;
    first.iov_len -= bytes;
  }
  return places;
}

constexpr int kMaxRepeats = 1000;  // of EINTR and EAGAIN without a byte between them

}  // namespace

Failure file_shrank(const std::string& name, std::uint64_t offset) {
  return fail(Code::corrupt, "\"{}\" ends at byte {}: it shrank while it was read", name,
              format_count(offset));
}

Result<> read_into(FileCalls& calls, const FilePlace& from, std::span<iovec> places) {
  std::uint64_t offset = from.offset;
  int repeats = 0;
  places = skip_bytes(places, 0);
  while (!places.empty()) {
    const ssize_t got = calls.read(from.fd, places, offset, 0);
    if (got > 0) {
      offset += static_cast<std::uint64_t>(got);
      places = skip_bytes(places, static_cast<std::size_t>(got));
      repeats = 0;
      continue;
    }
    if (got == 0) return file_shrank(from.name, offset);
    const int error = errno;
    if ((error != EINTR && error != EAGAIN) || ++repeats > kMaxRepeats) {
      return fail_os(Code::io, error, "\"{}\": read at byte {}", from.name, format_count(offset));
    }
    if (error == EAGAIN) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return {};
}

Result<> read_into(FileCalls& calls, const FilePlace& from, std::span<std::byte> to) {
  iovec place = {to.data(), to.size()};
  return read_into(calls, from, std::span(&place, 1));
}

}  // namespace wc::load
