// The daemon's side of the helper: jobs out, answers back by job number, never waiting. A helper
// that dies is replaced; the jobs it had are answered `busy` (reserve, seal: they may be asked for
// again) or done (release: what it held closed with it). Each job is answered once, from the event
// loop, never from inside the call that asked for it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "base/result.hpp"
#include "daemon/event_loop.hpp"
#include "daemon/helper.hpp"
#include "daemon/job.hpp"

namespace wc::daemon {

class HelperClient {
  // By create() only.
  struct Made {
    explicit Made() = default;
  };

 public:
  struct Done {
    Job job;                      // as the helper answered it
    std::vector<Fd> descriptors;  // as JobKind says
  };
  using Answer = std::move_only_function<void(Result<Done>)>;

  struct SealRequest {
    memory::Transport transport = memory::Transport::host_fd;
    std::span<const std::uint64_t> sizes;  // of all segments
    std::span<const FdView> writable;      // host segments, then the manifest
    std::string fingerprint;               // that the manifest must have
  };

  /// Errors: io (epoll).
  [[nodiscard]] static Result<std::unique_ptr<HelperClient>> create(EventLoop& loop,
                                                                    HelperProcess process);
  HelperClient(Made, EventLoop& loop) : loop_(loop) {}
  /// Ends the helper and waits for its end.
  ~HelperClient();
  HelperClient(const HelperClient&) = delete;
  HelperClient& operator=(const HelperClient&) = delete;

  /// At most kMaxSegments sizes. Errors in the answer: exhausted, io, busy (the helper died).
  void reserve(std::span<const std::uint64_t> sizes, std::uint64_t manifest_bytes, Answer answer);
  /// The descriptors stay the caller's, and open until the answer. Errors in the answer: corrupt,
  /// mismatch, busy (a writable mapping is left; the helper died), io.
  void seal(const SealRequest& request, Answer answer);
  /// Device files that keep the GPU with this UUID from being stopped while somebody holds them;
  /// none where there are none. Opening one may wait for the driver.
  void hold(std::string_view device, Answer answer);
  /// Receives the next packet of a session's socket, which has a descriptor, and looks at that
  /// (foreign.hpp): the answer has it. Errors in the answer: invalid_argument (no memory of a
  /// device), corrupt, io, busy (the helper died); none while the descriptor holds the helper's
  /// child.
  void take(Fd socket, Answer answer);
  /// Closes what may be the last holders of memory, or foreign, where nobody waits for it. At most
  /// kMaxDescriptors of them. `done` may be empty.
  void release(std::vector<Fd> holders, std::move_only_function<void()> done);

  [[nodiscard]] std::size_t jobs() const { return waiting_.size(); }
  [[nodiscard]] pid_t pid() const { return process_.pid; }

 private:
  struct Outgoing {
    Job job;
    std::vector<FdView> views;
    std::vector<Fd> owned;
  };
  struct Waiting {
    Answer answer;
    JobKind kind = JobKind::drop;
    bool sent = false;
  };

  void schedule_pump();
  Result<> adopt(HelperProcess process);
  void ask(Outgoing out, Answer answer);
  std::uint64_t expect(Job& job, Answer answer);
  void pump();
  bool receive_answers();  // true: there may be more
  void finish(std::uint64_t number, Result<Done> result);
  void on_death();
  void fail_sent(const Error& error);
  void restart_later();
  void restart();
  std::string end_helper();  // how it ended

  EventLoop& loop_;
  HelperProcess process_;
  std::deque<Outgoing> queue_;
  std::map<std::uint64_t, Waiting> waiting_;
  std::size_t in_flight_ = 0;
  std::uint64_t next_number_ = 1;
  Clock::time_point started_;
  std::chrono::milliseconds pause_{0};  // before the next start
  bool pump_scheduled_ = false;
  // One for all: taken anew for each answer, it would leave the heap in pieces.
  std::unique_ptr<wire::PacketBuffer> buffer_ = std::make_unique<wire::PacketBuffer>();
  CallHandler on_socket_{[this](std::uint32_t) {
    receive_answers();
    pump();
  }};
  CallHandler on_process_{[this](std::uint32_t) { on_death(); }};
  EventLoop::Watch socket_watch_;
  EventLoop::Watch process_watch_;
  EventLoop::Timer retry_;
};

}  // namespace wc::daemon
