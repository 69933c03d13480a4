// What the daemon and its helper say to each other: one fixed record in each packet, with
// descriptors beside it. Both ends are the same program (the helper is forked, never executed), so
// the record is its memory; the peer is trusted as this process trusts itself, and still checked
// for what it would index with.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/fd.hpp"
#include "base/result.hpp"
#include "memory/types.hpp"
#include "wire/packet.hpp"

namespace wc::daemon {

enum class JobKind : std::uint8_t {
  reserve,  // -> descriptors: one memfd for each size, then the manifest's if it has bytes
  seal,     // with descriptors: segments of host memory, then the manifest; -> the same, read-only
  keep,     // with descriptors, which the helper holds until drop: no answer
  drop,     // of a keep with this number, now the only holder: -> when they are closed
  hold,     // of a device: -> its device files, which keep it from being stopped (gpu_node.hpp)
  take,  // with a session's socket, whose next packet has a descriptor: -> that, if it may be held
};

inline constexpr std::size_t kFingerprintDigits = 32;

/// Request and answer in one.
struct Job {
  std::uint64_t number = 0;  // chosen by the daemon, never used again
  JobKind kind = JobKind::drop;
  memory::Transport transport = memory::Transport::host_fd;
  std::uint16_t segments = 0;
  std::uint32_t tensors = 0;                              // of the manifest that was checked
  std::int32_t code = 0;                                  // of an answer: wc::Code
  std::uint64_t manifest_bytes = 0;                       // 0: none
  std::array<char, kFingerprintDigits> fingerprint{};     // the manifest must have it
  std::array<char, kFingerprintDigits> source_digest{};   // of its source part: what a name is of
  std::array<char, 132> device{};                         // of a hold
  std::array<char, 32> origin{};                          // of a failure
  std::array<char, 1000> message{};                       // of a failure
  std::array<std::uint64_t, wire::kMaxSegments> bytes{};  // of each segment

  [[nodiscard]] std::span<const std::uint64_t> sizes() const {
    return std::span(bytes).first(segments);
  }
};

void set_device(Job& job, std::string_view device);
[[nodiscard]] std::string device_of(const Job& job);
void set_failure(Job& job, const Error& error);
[[nodiscard]] Error failure_of(const Job& job);

/// Waits until the socket takes it: for the helper's side. Errors: as send_packet.
[[nodiscard]] Result<> send_job_waiting(FdView socket, const Job& job,
                                        std::span<const FdView> descriptors);
[[nodiscard]] Result<wire::Sent> send_job(FdView socket, const Job& job,
                                          std::span<const FdView> descriptors);

struct ReceivedJob {
  wire::Receipt receipt = wire::Receipt::would_block;
  Job job;
  std::vector<Fd> descriptors;
};
/// The buffer is for the call only. Errors: as receive_packet; corrupt.
[[nodiscard]] Result<ReceivedJob> receive_job(FdView socket, wire::PacketBuffer& buffer);

}  // namespace wc::daemon
