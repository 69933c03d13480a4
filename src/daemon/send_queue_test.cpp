#include "daemon/send_queue.hpp"

#include <array>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/limits.hpp"
#include "wire/packet.hpp"

namespace wc::daemon {
namespace {

using State = SendQueue::State;

class SendQueueTest : public ::testing::Test {
 protected:
  SendQueueTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()),
              0);
    mine_ = Fd(ends[0]);
    theirs_ = Fd(ends[1]);
  }

  static wire::Bytes done() { return *wire::encode(1, wire::fb::DoneT()); }

  SendQueue::Packet with_descriptor() {
    return {1, done(),
            [this]() -> Result<std::vector<FdView>> { return std::vector<FdView>{null_}; }};
  }

  // How many descriptors came with the next packet; -1: none is there.
  int receive() {
    wire::Packet packet;
    const auto receipt =
        wire::receive_packet(theirs_, buffer_->bytes, wire::kMaxDescriptors, packet);
    if (!receipt || *receipt != wire::Receipt::packet) return -1;
    last_ = (*wire::decode(packet.bytes))->body_type();
    return static_cast<int>(packet.descriptors.size());
  }

  Fd mine_;
  Fd theirs_;
  Fd null_{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
  std::unique_ptr<wire::PacketBuffer> buffer_ = std::make_unique<wire::PacketBuffer>();
  wire::fb::Body last_ = wire::fb::Body::NONE;
  SendQueue queue_;
};

TEST_F(SendQueueTest, OnePacketWithDescriptorsLiesUnreadAtATime) {
  for (int count = 0; count < 3; ++count) ASSERT_TRUE(queue_.push(with_descriptor()));
  EXPECT_EQ(*queue_.flush(mine_), State::unread);
  EXPECT_EQ(queue_.sent(), 1U);
  EXPECT_EQ(*queue_.flush(mine_), State::unread);
  EXPECT_EQ(queue_.sent(), 1U);
  EXPECT_EQ(receive(), 1);
  EXPECT_EQ(*queue_.flush(mine_), State::unread);
  EXPECT_EQ(receive(), 1);
  EXPECT_EQ(*queue_.flush(mine_), State::empty);
  EXPECT_EQ(receive(), 1);
  EXPECT_EQ(receive(), -1);
}

TEST_F(SendQueueTest, AFullSocketKeepsTheRestInOrder) {
  State state = State::empty;
  std::uint64_t pushed = 0;
  while (state == State::empty) {
    ASSERT_TRUE(queue_.push({1, done(), {}}));
    ++pushed;
    state = *queue_.flush(mine_);
  }
  EXPECT_EQ(state, State::no_room);
  while (receive() == 0) continue;
  EXPECT_EQ(*queue_.flush(mine_), State::empty);
  EXPECT_EQ(queue_.sent(), pushed);
}

TEST_F(SendQueueTest, WhoNeverReadsFillsItOnlyToItsBound) {
  Result<> pushed;
  std::size_t count = 0;
  for (; count < 10 * kMaxQueuedPackets && pushed; ++count) {
    pushed = queue_.push(with_descriptor());
    ASSERT_TRUE(queue_.flush(mine_));
  }
  ASSERT_FALSE(pushed);
  EXPECT_EQ(pushed.error().code, Code::exhausted);
  EXPECT_LE(count, kMaxQueuedPackets + 2);
}

TEST_F(SendQueueTest, DescriptorsThatHaveGoneBecomeAFailure) {
  ASSERT_TRUE(queue_.push(
      {7, done(), []() -> Result<std::vector<FdView>> { return fail(Code::cancelled, "gone"); }}));
  EXPECT_EQ(*queue_.flush(mine_), State::empty);
  EXPECT_EQ(receive(), 0);
  EXPECT_EQ(last_, wire::fb::Body::Failure);
}

// As a user who may not pass its limit of open files with those that are in flight.
int send_as_nobody(FdView null) {
  const rlimit limit{64, 64};
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0 || ::setresuid(54321, 54321, 54321) != 0) return 1;
  const std::vector<FdView> many(40, null);
  std::array<std::array<Fd, 2>, 3> pairs;
  SendQueue queue;
  for (auto& pair : pairs) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) return 2;
    pair = {Fd(ends[0]), Fd(ends[1])};
  }
  const auto bytes = wire::encode(1, wire::fb::DoneT());
  for (std::size_t at = 0; at < 2; ++at) {
    if (!wire::send_packet(pairs[at][0], *bytes, many)) return 3;
  }
  if (!queue.push({1, *bytes, [&]() -> Result<std::vector<FdView>> { return many; }})) return 4;
  const auto full = queue.flush(pairs[2][0]);
  if (!full || *full != State::in_flight) return 5;
  const auto buffer = std::make_unique<wire::PacketBuffer>();
  {
    wire::Packet packet;
    if (!wire::receive_packet(pairs[0][1], buffer->bytes, 40, packet)) return 6;
  }
  const auto sent = queue.flush(pairs[2][0]);
  return sent && *sent == State::empty ? 0 : 7;
}

TEST_F(SendQueueTest, TooManyDescriptorsInFlightAreWaitedFor) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const pid_t child = ::fork();
  if (child == 0) ::_exit(send_as_nobody(null_));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(SendQueueTest, APeerThatHasGoneIsAnError) {
  theirs_.reset();
  ASSERT_TRUE(queue_.push({1, done(), {}}));
  const auto state = queue_.flush(mine_);
  ASSERT_FALSE(state);
  EXPECT_EQ(state.error().code, Code::disconnected);
}

}  // namespace
}  // namespace wc::daemon
