#include "client/channel.hpp"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/fake_daemon_test.hpp"

namespace wc::client {
namespace {

using namespace std::chrono_literals;
using namespace wire::fb;
using testing::HasSubstr;

class ChannelTest : public testing::Test {
 protected:
  // The other end follows a script in a thread of its own.
  void serve(std::function<void(FakePeer&)> script, std::chrono::nanoseconds timeout = 20s) {
    int pair[2] = {};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    channel_ = *Channel::create(Fd(pair[0]), timeout);
    thread_ =
        std::thread([script = std::move(script), end = std::make_shared<FakePeer>(Fd(pair[1]))] {
          script(*end);
          end->close();
        });
  }
  void TearDown() override {
    channel_.reset();
    if (thread_.joinable()) thread_.join();
  }
  Result<DoneT> detach(std::uint64_t lease, const CallOptions& options = {}) {
    DetachT request;
    request.lease = lease;
    return channel_->call<DoneT>(request, options);
  }
  static ProgressT progress(std::uint64_t done) {
    ProgressT event;
    event.entry = std::make_unique<EntryInfoT>();
    event.entry->done_bytes = done;
    return event;
  }

  std::unique_ptr<Channel> channel_;
  std::thread thread_;
};

TEST_F(ChannelTest, RequestsHaveNumbersOfTheirOwn) {
  serve([](FakePeer& peer) {
    for (std::uint64_t wanted = 1; wanted <= 3; ++wanted) {
      std::uint64_t request = 0;
      peer.expect<DetachT>(request);
      EXPECT_EQ(request, wanted);
      peer.send(request, DoneT{});
    }
  });
  for (int n = 0; n < 3; ++n) EXPECT_TRUE(detach(1));
}

TEST_F(ChannelTest, FailureAndWrongBodyAreTheCallsAlone) {
  serve([](FakePeer& peer) {
    std::uint64_t request = 0;
    peer.expect<DetachT>(request);
    peer.fail(request, Code::not_found, "no lease 1");
    peer.expect<DetachT>(request);
    peer.send(request, GrantedT{});
    peer.expect<DetachT>(request);
    peer.send(request, DoneT{});
  });
  expect_error(detach(1), Code::not_found, "no lease 1");
  expect_error(detach(1), Code::corrupt, "sent Granted where Done was due");
  EXPECT_TRUE(detach(1));
}

TEST_F(ChannelTest, EventsComeBeforeTheAnswerInOrder) {
  serve([](FakePeer& peer) {
    std::uint64_t request = 0;
    peer.expect<DetachT>(request);
    for (std::uint64_t done = 1; done <= 3; ++done) peer.send(request, progress(done));
    peer.send(request, DoneT{});
  });
  std::vector<std::uint64_t> seen;
  CallOptions options;
  options.on_event = [&](const Message& message) {
    seen.push_back(message.body_as_Progress()->entry()->done_bytes());
  };
  EXPECT_TRUE(detach(1, options));
  EXPECT_THAT(seen, testing::ElementsAre(1, 2, 3));
}

TEST_F(ChannelTest, EventFunctionMayUseTheChannel) {
  serve([](FakePeer& peer) {
    std::uint64_t outer = 0;
    std::uint64_t inner = 0;
    peer.expect<DetachT>(outer);
    peer.send(outer, progress(1));
    peer.expect<DetachT>(inner);
    peer.send(inner, DoneT{});
    peer.send(outer, DoneT{});
  });
  bool nested = false;
  CallOptions options;
  options.on_event = [&](const Message&) { nested = detach(2).has_value(); };
  EXPECT_TRUE(detach(1, options));
  EXPECT_TRUE(nested);
}

TEST_F(ChannelTest, ThreadsShareItAndAnswersComeInAnyOrder) {
  constexpr int kThreads = 8;
  constexpr std::uint64_t kRounds = 200;
  serve([](FakePeer& peer) {
    // Answers a window of requests backwards, each with an event before.
    std::vector<std::pair<std::uint64_t, std::uint64_t>> window;
    for (std::uint64_t n = 0; n < kThreads * kRounds; ++n) {
      std::uint64_t request = 0;
      const auto body = peer.expect<DetachT>(request);
      window.emplace_back(request, body.lease);
      if (window.size() < 3 && !peer.idle()) continue;
      for (; !window.empty(); window.pop_back()) {
        peer.send(window.back().first, progress(window.back().second));
        GrantedT granted;
        granted.load = window.back().second;
        peer.send(window.back().first, granted);
      }
    }
  });
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int n = 0; n < kThreads; ++n) {
    threads.emplace_back([&, n] {
      for (std::uint64_t round = 0; round < kRounds; ++round) {
        DetachT request;
        request.lease = static_cast<std::uint64_t>(n) * 1000 + round;
        std::uint64_t event = 0;
        CallOptions options;
        options.on_event = [&](const Message& message) {
          event = message.body_as_Progress()->entry()->done_bytes();
        };
        const auto reply = channel_->call<GrantedT>(request, options);
        ASSERT_TRUE(reply) << reply.error().message;
        if (reply->load == request.lease && event == request.lease) ++right;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right, kThreads * static_cast<int>(kRounds));
}

TEST_F(ChannelTest, DaemonThatDiesFailsEveryCallWithThatReason) {
  serve([](FakePeer& peer) {
    for (int n = 0; n < 4; ++n) peer.receive();
  });
  std::vector<std::thread> threads;
  for (int n = 0; n < 4; ++n) {
    threads.emplace_back(
        [&] { expect_error(detach(1), Code::disconnected, "the daemon closed the connection"); });
  }
  for (auto& thread : threads) thread.join();
  expect_error(detach(1), Code::disconnected, "the daemon closed the connection");
  EXPECT_TRUE(channel_->broken());
}

TEST_F(ChannelTest, LastWordsAreTheReason) {
  serve([](FakePeer& peer) {
    peer.receive();
    peer.fail(0, Code::exhausted, "too many requests");
  });
  expect_error(detach(1), Code::exhausted, "too many requests");
  expect_error(detach(1), Code::exhausted, "too many requests");
}

TEST_F(ChannelTest, LastWordsAreHeardAlsoWhereSendingFails) {
  serve([](FakePeer& peer) { peer.fail(0, Code::denied, "uid 7 may not use this daemon"); });
  thread_.join();
  expect_error(detach(1), Code::denied, "uid 7 may not use this daemon");
}

TEST_F(ChannelTest, AnswerToARequestThatWasNeverMadeIsCorrupt) {
  serve([](FakePeer& peer) {
    peer.receive();
    peer.send(1000, DoneT{});
    EXPECT_EQ(peer.receive(), nullptr);  // the client hangs up
  });
  expect_error(detach(1), Code::corrupt, "Done for the request 1000, which was never made");
}

TEST_F(ChannelTest, DescriptorsThatAreNotDueBreakTheConnectionAndLeakNothing) {
  const auto open_descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  serve([](FakePeer& peer) {
    std::uint64_t request = 0;
    peer.expect<DetachT>(request);
    peer.send(request, DoneT{}, {peer.socket(), peer.socket()});
    EXPECT_EQ(peer.receive(), nullptr);
  });
  const auto before = open_descriptors();
  CallOptions options;
  options.descriptors_due = 1;
  expect_error(detach(1, options), Code::corrupt, "more descriptors");
  thread_.join();
  EXPECT_LE(open_descriptors(), before);
}

TEST_F(ChannelTest, DescriptorsComeWithTheAnswerThatTheyAreDueWith) {
  serve([](FakePeer& peer) {
    std::uint64_t request = 0;
    peer.expect<DetachT>(request, 1);
    EXPECT_EQ(peer.descriptors.size(), 1U);
    peer.send(request, DoneT{}, {peer.socket(), peer.socket()});
  });
  CallOptions options;
  options.descriptors_due = 2;
  const FdView lent[] = {FdView(0)};
  options.descriptors = lent;
  const auto answer = channel_->exchange(DetachT{}, options);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->descriptors.size(), 2U);
}

TEST_F(ChannelTest, TimedOutCallIsCancelledAndWhatItGrantsLateIsGivenBack) {
  std::atomic<bool> given_back = false;
  serve([&](FakePeer& peer) {
    std::uint64_t request = 0;
    std::uint64_t ignored = 0;
    peer.expect<AttachT>(request);
    EXPECT_EQ(peer.expect<CancelT>(ignored).request, request);
    AttachedT late;
    late.lease = 77;
    peer.send(request, late, {peer.socket()});
    peer.expect<StatusT>(request);
    peer.send(request, StatusReportT{});
    EXPECT_EQ(peer.expect<DetachT>(request).lease, 77U);
    given_back = true;
    peer.send(request, DoneT{});
    peer.receive();
  });
  CallOptions options;
  options.timeout = 20ms;
  options.descriptors_due = 3;
  expect_error(channel_->exchange(AttachT{}, options), Code::timed_out,
               "Attach: no answer within 20.0 ms");
  EXPECT_TRUE(channel_->call<StatusReportT>(StatusT{}));
  // It was read before the answer to the second call, and given back by the same thread.
  for (int n = 0; n < 2000 && !given_back; ++n) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(given_back);
}

TEST_F(ChannelTest, LateGrantIsAbandoned) {
  std::atomic<bool> abandoned = false;
  serve([&](FakePeer& peer) {
    std::uint64_t request = 0;
    peer.expect<BeginT>(request);
    peer.receive();
    GrantedT late;
    late.load = 5;
    peer.send(request, late);
    peer.expect<StatusT>(request);
    peer.send(request, StatusReportT{});
    abandoned = peer.expect<AbandonT>(request).load == 5;
    peer.receive();
  });
  CallOptions options;
  options.timeout = 10ms;
  expect_error(channel_->exchange(BeginT{}, options), Code::timed_out, "Begin");
  EXPECT_TRUE(channel_->call<StatusReportT>(StatusT{}));
  for (int n = 0; n < 2000 && !abandoned; ++n) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(abandoned);
}

TEST_F(ChannelTest, CancellingAsksTheDaemonAndTakesItsAnswer) {
  const auto cancellation = *Cancellation::create();
  serve([&](FakePeer& peer) {
    std::uint64_t request = 0;
    std::uint64_t ignored = 0;
    peer.expect<WaitT>(request);
    cancellation->cancel();
    EXPECT_EQ(peer.expect<CancelT>(ignored).request, request);
    peer.fail(request, Code::cancelled, "the wait for \"x\" was cancelled");
    peer.receive();
  });
  CallOptions options;
  options.cancellation = cancellation.get();
  options.timeout = kNoLimit;
  expect_error(channel_->call<EntryT>(WaitT{}, options), Code::cancelled, "the wait for \"x\"");
}

TEST_F(ChannelTest, AnswerThatCrossesTheCancelCounts) {
  const auto cancellation = *Cancellation::create();
  serve([&](FakePeer& peer) {
    std::uint64_t request = 0;
    peer.expect<WaitT>(request);
    cancellation->cancel();
    peer.receive();
    peer.send(request, EntryT{});
    peer.receive();
  });
  CallOptions options;
  options.cancellation = cancellation.get();
  EXPECT_TRUE(channel_->call<EntryT>(WaitT{}, options));
}

TEST_F(ChannelTest, CancellingEndsAlsoThreadsThatFollowAndADaemonThatIgnoresIt) {
  const auto cancellation = *Cancellation::create();
  serve([](FakePeer& peer) {
    while (peer.receive() != nullptr) continue;
  });
  std::vector<std::thread> threads;
  for (int n = 0; n < 4; ++n) {
    threads.emplace_back([&] {
      CallOptions options;
      options.cancellation = cancellation.get();
      options.timeout = kNoLimit;
      expect_error(channel_->call<EntryT>(WaitT{}, options), Code::cancelled, "Wait: cancelled");
    });
  }
  std::this_thread::sleep_for(20ms);
  cancellation->cancel();
  for (auto& thread : threads) thread.join();
}

TEST_F(ChannelTest, CancelledBeforeItStartsSendsNothingForLong) {
  const auto cancellation = *Cancellation::create();
  cancellation->cancel();
  EXPECT_TRUE(cancellation->is_cancelled());
  serve([](FakePeer& peer) {
    while (peer.receive() != nullptr) continue;
  });
  CallOptions options;
  options.cancellation = cancellation.get();
  expect_error(channel_->call<EntryT>(WaitT{}, options), Code::cancelled, "cancelled");
}

TEST_F(ChannelTest, LeaderThatTimesOutPassesTheReadingOn) {
  serve([](FakePeer& peer) {
    std::uint64_t first = 0;
    std::uint64_t second = 0;
    peer.expect<StatusT>(first);
    peer.expect<DetachT>(second);
    peer.receive();  // the first one gives up
    peer.send(second, DoneT{});
    peer.receive();
  });
  std::thread impatient([&] {
    CallOptions options;
    options.timeout = 100ms;
    expect_error(channel_->call<StatusReportT>(StatusT{}, options), Code::timed_out, "Status");
  });
  std::this_thread::sleep_for(20ms);
  EXPECT_TRUE(detach(1));
  impatient.join();
}

TEST_F(ChannelTest, DaemonThatDoesNotReadTimesOut) {
  std::atomic<bool> over = false;
  serve([&](FakePeer&) {
    while (!over) std::this_thread::sleep_for(1ms);
  });
  HelloT large;
  large.command.assign(4000, 'x');
  large.container.assign(4000, 'x');
  CallOptions options;
  options.timeout = 1ms;
  Code last = Code::ok;
  std::string text;
  for (int n = 0; n < 2000 && text.find("does not read") == std::string::npos; ++n) {
    const auto answer = channel_->exchange(large, options);
    ASSERT_FALSE(answer);
    last = answer.error().code;
    text = answer.error().message;
    if (last != Code::timed_out) break;
  }
  EXPECT_EQ(last, Code::timed_out);
  EXPECT_THAT(text, HasSubstr("the daemon does not read"));
  const auto posted = channel_->post(ReportProgressT{});
  EXPECT_TRUE(posted && !*posted) << "a full socket leaves out what nobody waits for";
  over = true;
  TearDown();
}

TEST_F(ChannelTest, PostedRequestsDoNotWait) {
  std::atomic<int> reports = 0;
  serve([&](FakePeer& peer) {
    while (const auto message = peer.receive())
      if (FakePeer::as<ReportProgressT>(*message) != nullptr) ++reports;
  });
  for (int n = 0; n < 3; ++n) EXPECT_TRUE(channel_->post(ReportProgressT{}).value_or(false));
  TearDown();
  EXPECT_EQ(reports, 3);
}

TEST_F(ChannelTest, ForkWhileThreadsCallLeavesTheChildFree) {
  std::atomic<bool> stop = false;
  serve([](FakePeer& peer) {
    while (const auto message = peer.receive())
      if (FakePeer::as<DetachT>(*message) != nullptr) peer.send(message->request, DoneT{});
  });
  std::vector<std::thread> threads;
  for (int n = 0; n < 4; ++n)
    threads.emplace_back([&] {
      while (!stop) EXPECT_TRUE(detach(1));
    });
  for (int n = 0; n < 20; ++n) {
    const pid_t child = ::fork();
    if (child == 0) {
      const bool refused = !detach(1) && channel_->broken() && channel_->forked();
      channel_.reset();  // whatever the parent's threads held
      ::_exit(refused ? 0 : 1);
    }
    int state = 0;
    ASSERT_EQ(::waitpid(child, &state, 0), child);
    EXPECT_EQ(state, 0);
  }
  stop = true;
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace wc::client
