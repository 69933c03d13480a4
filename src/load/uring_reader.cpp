#include "load/uring_reader.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include <liburing.h>

namespace wc::load {
namespace {

constexpr std::uint64_t kPiece = std::uint64_t{512} << 10;
constexpr unsigned kDepth = 8;  // pieces in flight

}  // namespace

struct UringReader::Ring {
  io_uring uring = {};
  bool made = false;
  ~Ring() {
    if (made) ::io_uring_queue_exit(&uring);
  }
};

UringReader::UringReader(std::unique_ptr<Ring> ring) : ring_(std::move(ring)) {}
UringReader::UringReader(UringReader&&) noexcept = default;
UringReader::~UringReader() = default;

Result<UringReader> UringReader::create() {
  auto ring = std::make_unique<Ring>();
  const int error = -::io_uring_queue_init(kDepth, &ring->uring, 0);
  if (error != 0) {
    const bool refused = error == EPERM || error == ENOSYS || error == EACCES;
    return fail_os(refused ? Code::unsupported : Code::io, error, "io_uring_setup");
  }
  ring->made = true;
  return UringReader(std::move(ring));
}

namespace {

// The stretch of one read, piece by piece.
struct Pieces {
  std::array<std::uint64_t, kDepth> got = {};    // bytes that came of each piece in flight
  std::array<std::uint64_t, kDepth> asked = {};  // bytes that it asked for
  unsigned count = 0;
  int error = 0;
};

void submit_pieces(io_uring& uring, FdView fd, std::uint64_t offset, std::span<std::byte> to,
                   Pieces& pieces) {
  for (pieces.count = 0; pieces.count < kDepth && !to.empty(); ++pieces.count) {
    const auto piece = to.first(std::min<std::uint64_t>(kPiece, to.size()));
    io_uring_sqe* const entry = ::io_uring_get_sqe(&uring);
    ::io_uring_prep_read(entry, fd.get(), piece.data(), static_cast<unsigned>(piece.size()),
                         offset);
    ::io_uring_sqe_set_data64(entry, pieces.count);
    pieces.asked.at(pieces.count) = piece.size();
    offset += piece.size();
    to = to.subspan(piece.size());
  }
}

// Waits for every piece: the kernel writes into the caller's memory until then.
void await_pieces(io_uring& uring, Pieces& pieces) {
  unsigned submitted = 0;
  while (submitted < pieces.count) {
    const int sent = ::io_uring_submit(&uring);
    if (sent >= 0) submitted += static_cast<unsigned>(sent);
    if (sent == -EINTR || sent == -EAGAIN || sent == -EBUSY) continue;
    if (sent <= 0) {
      pieces.error = sent < 0 ? -sent : EIO;
      break;
    }
  }
  for (unsigned done = 0; done < submitted;) {
    io_uring_cqe* completed = nullptr;
    const int error = -::io_uring_wait_cqe(&uring, &completed);
    if (error != 0) {
      if (error == EINTR || error == EAGAIN) continue;
      pieces.error = error;
      return;
    }
    const auto piece = static_cast<std::size_t>(::io_uring_cqe_get_data64(completed));
    const int result = completed->res;
    if (result >= 0) pieces.got.at(piece) = static_cast<std::uint64_t>(result);
    if (result < 0 && result != -EINTR && result != -EAGAIN) pieces.error = -result;
    ::io_uring_cqe_seen(&uring, completed);
    ++done;
  }
}

}  // namespace

Result<std::uint64_t> UringReader::read(FdView fd, std::uint64_t offset, std::span<std::byte> to) {
  std::uint64_t done = 0;
  while (done < to.size()) {
    Pieces pieces;
    submit_pieces(ring_->uring, fd, offset + done, to.subspan(done), pieces);
    await_pieces(ring_->uring, pieces);
    if (pieces.error != 0) return fail_os(Code::io, pieces.error, "io_uring read");
    std::uint64_t whole = 0;  // bytes before the first short piece
    bool is_short = false;
    for (unsigned n = 0; n < pieces.count && !is_short; ++n) {
      whole += pieces.got.at(n);
      is_short = pieces.got.at(n) < pieces.asked.at(n);
    }
    done += whole;
    if (is_short) return done;
  }
  return done;
}

}  // namespace wc::load
