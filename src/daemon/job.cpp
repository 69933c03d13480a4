#include "daemon/job.hpp"

#include <cstring>
#include <type_traits>

#include <poll.h>

#include "wire/codec.hpp"

namespace wc::daemon {
namespace {

static_assert(std::is_trivially_copyable_v<Job>);
static_assert(sizeof(Job) <= wire::kMaxPacketBytes);

template <std::size_t N>
void put(std::array<char, N>& to, std::string_view text) {
  to.fill('\0');
  wire::clipped(text, N - 1).copy(to.data(), N - 1);
}

template <std::size_t N>
std::string get(const std::array<char, N>& from) {
  return {from.data(), ::strnlen(from.data(), N)};
}

bool plausible(const Job& job) {
  return job.kind <= JobKind::take && job.segments <= job.bytes.size();
}

}  // namespace

void set_device(Job& job, std::string_view device) { put(job.device, device); }

std::string device_of(const Job& job) { return get(job.device); }

void set_failure(Job& job, const Error& error) {
  job.code = static_cast<std::int32_t>(error.code);
  put(job.message, error.message);
  put(job.origin, error.origin);
}

Error failure_of(const Job& job) { return {code_of(job.code), get(job.message), get(job.origin)}; }

Result<wire::Sent> send_job(FdView socket, const Job& job, std::span<const FdView> descriptors) {
  return wire::send_packet(socket, std::as_bytes(std::span(&job, 1)), descriptors);
}

Result<> send_job_waiting(FdView socket, const Job& job, std::span<const FdView> descriptors) {
  for (;;) {
    const wire::Sent sent = TRY(send_job(socket, job, descriptors));
    if (sent == wire::Sent::sent) return {};
    // Nothing tells when other descriptors in flight have been read: look again in a millisecond.
    const bool room = sent == wire::Sent::would_block;
    pollfd ready{socket.get(), static_cast<short>(room ? POLLOUT : 0), 0};
    ::poll(&ready, 1, room ? -1 : 1);
  }
}

Result<ReceivedJob> receive_job(FdView socket, wire::PacketBuffer& buffer) {
  wire::Packet packet;
  ReceivedJob out;
  out.receipt = TRY(wire::receive_packet(socket, buffer.bytes, wire::kMaxDescriptors, packet));
  if (out.receipt != wire::Receipt::packet) return out;
  if (packet.bytes.size() != sizeof(Job)) {
    return fail(Code::corrupt, "a job of {} bytes instead of {}", packet.bytes.size(), sizeof(Job));
  }
  std::memcpy(&out.job, packet.bytes.data(), sizeof(Job));
  if (!plausible(out.job)) return fail(Code::corrupt, "a job that is none");
  out.descriptors = std::move(packet.descriptors);
  return out;
}

}  // namespace wc::daemon
