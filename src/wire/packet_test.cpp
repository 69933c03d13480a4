#include "wire/packet.hpp"

#include <array>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire/control.hpp"

namespace wc::wire {
namespace {

using testing::HasSubstr;

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

Fd memfd() {
  Fd fd(::memfd_create("packet_test", MFD_CLOEXEC));
  EXPECT_TRUE(fd);
  return fd;
}

bool same_file(FdView left, FdView right) {
  struct stat first{};
  struct stat second{};
  EXPECT_EQ(::fstat(left.get(), &first), 0);
  EXPECT_EQ(::fstat(right.get(), &second), 0);
  return first.st_ino == second.st_ino && first.st_dev == second.st_dev;
}

class PacketTest : public testing::Test {
 protected:
  void SetUp() override {
    before_ = open_descriptors();
    std::array<int, 2> pair{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()), 0);
    here_ = Fd(pair[0]);
    there_ = Fd(pair[1]);
  }
  void TearDown() override {
    packet_ = Packet{};
    here_.reset();
    there_.reset();
    EXPECT_EQ(open_descriptors(), before_) << "descriptors leaked";
  }
  void send(std::span<const FdView> descriptors, std::size_t bytes = 16) {
    const std::vector<std::byte> payload(bytes, std::byte{'p'});
    const auto sent = send_packet(here_, payload, descriptors);
    ASSERT_TRUE(sent) << sent.error().message;
    ASSERT_EQ(*sent, Sent::sent);
  }
  Result<Receipt> receive(std::size_t due) {
    return receive_packet(there_, buffer_.bytes, due, packet_);
  }
  void expect_refused(const Result<Receipt>& receipt, Code code, const std::string& text) {
    ASSERT_FALSE(receipt);
    EXPECT_EQ(receipt.error().code, code);
    EXPECT_THAT(receipt.error().message, HasSubstr(text));
    EXPECT_TRUE(packet_.bytes.empty());
    EXPECT_TRUE(packet_.descriptors.empty());
  }

  std::size_t before_ = 0;
  Fd here_;
  Fd there_;
  PacketBuffer buffer_{};
  Packet packet_;
};

TEST_F(PacketTest, BytesAndDescriptorsArriveInOrder) {
  const Fd first = memfd();
  const Fd second = memfd();
  send(std::array{first.view(), second.view()});
  ASSERT_EQ(receive(2), Receipt::packet);
  EXPECT_EQ(packet_.bytes.size(), 16U);
  EXPECT_EQ(packet_.bytes[15], std::byte{'p'});
  ASSERT_EQ(packet_.descriptors.size(), 2U);
  EXPECT_TRUE(same_file(packet_.descriptors[0], first));
  EXPECT_TRUE(same_file(packet_.descriptors[1], second));
  for (const Fd& fd : packet_.descriptors)
    EXPECT_EQ(::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

TEST_F(PacketTest, EmptySocketWouldBlockThoughItIsABlockingOne) {
  EXPECT_EQ(receive(0), Receipt::would_block);
}

TEST_F(PacketTest, FullSocketWouldBlock) {
  const std::vector<std::byte> payload(kMaxPacketBytes);
  Result<Sent> sent = Sent::sent;
  int count = 0;
  while (sent == Sent::sent && count < 10'000) {
    sent = send_packet(here_, payload);
    ++count;
  }
  EXPECT_EQ(sent, Sent::would_block);
  EXPECT_FALSE(all_read(here_));
}

TEST_F(PacketTest, LongestPacketPassesAndALongerOneIsRefused) {
  send({}, kMaxPacketBytes);
  ASSERT_EQ(receive(0), Receipt::packet);
  EXPECT_EQ(packet_.bytes.size(), kMaxPacketBytes);

  for (const std::size_t bytes : {kMaxPacketBytes + 1, kMaxPacketBytes * 2}) {
    const std::vector<char> payload(bytes);
    ASSERT_EQ(::send(here_.get(), payload.data(), bytes, 0), static_cast<ssize_t>(bytes));
    expect_refused(receive(4), Code::corrupt, "more than 65,536 bytes");
  }
  EXPECT_EQ(send_packet(here_, std::vector<std::byte>(kMaxPacketBytes + 1)).error().code,
            Code::invalid_argument);
}

TEST_F(PacketTest, LongPacketWithDescriptorsLeaksNone) {
  const Fd fd = memfd();
  std::vector<char> payload(kMaxPacketBytes + 1);
  iovec vector{payload.data(), payload.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &vector;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  auto* rights = CMSG_FIRSTHDR(&header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  const int number = fd.get();
  std::memcpy(CMSG_DATA(rights), &number, sizeof number);
  ASSERT_GT(::sendmsg(here_.get(), &header, 0), 0);
  const auto count = open_descriptors();
  expect_refused(receive(1), Code::corrupt, "more than 65,536 bytes");
  EXPECT_EQ(open_descriptors(), count);
}

TEST_F(PacketTest, DescriptorsWhereNoneAreDueAreRefused) {
  const Fd fd = memfd();
  const auto count = open_descriptors();
  send(std::array{fd.view()});
  expect_refused(receive(0), Code::corrupt, "where none are due");
  EXPECT_EQ(open_descriptors(), count);
  send({});
  EXPECT_EQ(receive(0), Receipt::packet);
}

TEST_F(PacketTest, SurplusDescriptorsAreClosedWhateverTheirNumber) {
  const Fd fd = memfd();
  const auto count = open_descriptors();
  for (const std::size_t surplus : {1U, 2U, 3U, 60U, 61U, 62U, 200U}) {
    for (const std::size_t due : {1U, 2U, 49U}) {
      send(std::vector(due + surplus, fd.view()));
      expect_refused(receive(due), Code::corrupt, "more descriptors came");
      EXPECT_EQ(open_descriptors(), count) << surplus << " more than " << due;
    }
  }
}

TEST_F(PacketTest, FewerDescriptorsThanDueAreForTheCallerToJudge) {
  send({});
  ASSERT_EQ(receive(kMaxDescriptors), Receipt::packet);
  EXPECT_TRUE(packet_.descriptors.empty());
}

TEST_F(PacketTest, AsManyDescriptorsAsAPacketHolds) {
  const Fd fd = memfd();
  send(std::vector(kMaxDescriptors, fd.view()));
  ASSERT_EQ(receive(kMaxDescriptors), Receipt::packet);
  EXPECT_EQ(packet_.descriptors.size(), kMaxDescriptors);
  EXPECT_EQ(send_packet(here_, std::array{std::byte{}}, std::vector(251, fd.view())).error().code,
            Code::invalid_argument);
}

TEST_F(PacketTest, LimitOfOpenFilesAtReceiptLosesThePacketAndLeaksNothing) {
  const Fd fd = memfd();
  send(std::vector(20, fd.view()));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit tight = before;
  tight.rlim_cur = 8 + open_descriptors();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  const auto receipt = receive(20);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  expect_refused(receipt, Code::exhausted, "raise the limit of open files");
  EXPECT_EQ(receipt.error().origin, "EMFILE");
}

TEST_F(PacketTest, CredentialsBetweenTakeNoRoomFromDescriptors) {
  const int on = 1;
  ASSERT_EQ(::setsockopt(there_.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on), 0);
  const Fd fd = memfd();
  send(std::vector(kMaxDescriptors, fd.view()));
  ASSERT_EQ(receive(kMaxDescriptors), Receipt::packet);
  EXPECT_EQ(packet_.descriptors.size(), kMaxDescriptors);
}

TEST_F(PacketTest, SeveralControlMessagesAreAllOwned) {
  alignas(cmsghdr) std::array<char, 256> control{};
  msghdr header{};
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const std::array<int, 3> numbers = {::dup(0), ::dup(0), ::dup(0)};
  auto* part = CMSG_FIRSTHDR(&header);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(part), numbers.data(), sizeof(int));
  part = CMSG_NXTHDR(&header, part);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_CREDENTIALS;
  part->cmsg_len = CMSG_LEN(sizeof(ucred));
  part = CMSG_NXTHDR(&header, part);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(2 * sizeof(int));
  std::memcpy(CMSG_DATA(part), numbers.data() + 1, 2 * sizeof(int));
  header.msg_controllen =
      CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(ucred)) + CMSG_SPACE(2 * sizeof(int));
  std::vector<Fd> owned;
  own_descriptors(header, owned);
  ASSERT_EQ(owned.size(), 3U);
  for (std::size_t n = 0; n < 3; ++n) EXPECT_EQ(owned[n].get(), numbers[n]);
}

TEST_F(PacketTest, ControlDataIsReadNoFurtherThanTheKernelSaysItGoes) {
  alignas(cmsghdr) std::array<char, 256> control{};
  msghdr header{};
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  auto* part = CMSG_FIRSTHDR(&header);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(40 * sizeof(int));
  const int number = ::dup(0);
  std::memcpy(CMSG_DATA(part), &number, sizeof number);
  header.msg_controllen = CMSG_LEN(sizeof(int));
  std::vector<Fd> owned;
  own_descriptors(header, owned);
  ASSERT_EQ(owned.size(), 1U);
  EXPECT_EQ(owned[0].get(), number);
}

TEST_F(PacketTest, ClosedPeerIsTheEndForAReaderAndDisconnectedForAWriter) {
  here_.reset();
  EXPECT_EQ(receive(0), Receipt::end);
  const auto sent = send_packet(there_, std::array{std::byte{}});
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, Code::disconnected);
}

TEST_F(PacketTest, LastWordsOfAPeerThatReadNothingAreHeard) {
  ASSERT_EQ(send_packet(there_, std::array{std::byte{'u'}}), Sent::sent);
  send({});
  here_.reset();  // with unread data: this leaves ECONNRESET before what was sent
  ASSERT_EQ(receive(0), Receipt::packet);
  EXPECT_EQ(receive(0), Receipt::end);
}

TEST_F(PacketTest, UnreadDescriptorsInFlightAreRefusedByTheKernelAndTriedAgain) {
  const auto user = ::geteuid();
  // Root may have any number of them in flight.
  if (user == 0) {
    ASSERT_EQ(::seteuid(65534), 0);
  }
  const Fd fd = memfd();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit tight = before;
  tight.rlim_cur = 64;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  Result<Sent> sent = Sent::sent;
  for (int n = 0; n < 10 && sent == Sent::sent; ++n)
    sent = send_packet(here_, std::array{std::byte{}}, std::vector(60, fd.view()));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  if (user == 0) {
    ASSERT_EQ(::seteuid(user), 0);
  }
  EXPECT_EQ(sent, Sent::descriptors_in_flight);
}

TEST_F(PacketTest, ClosedDescriptorIsTheCallersFault) {
  EXPECT_EQ(send_packet(here_, std::array{std::byte{}}, std::array{FdView(-1)}).error().code,
            Code::invalid_argument);
}

TEST_F(PacketTest, ReadingIsSeenByTheSender) {
  EXPECT_TRUE(all_read(here_));
  send({});
  EXPECT_FALSE(all_read(here_));
  ASSERT_EQ(receive(0), Receipt::packet);
  EXPECT_TRUE(all_read(here_));
}

TEST_F(PacketTest, PeekingSeesDescriptorsAndLeavesThemWithTheirPacket) {
  PacketBuffer buffer;
  const Fd file = memfd();
  send(std::array{file.view()}, 24);
  send({}, 8);
  for (int times = 0; times < 2; ++times) {
    const auto peeked = peek_packet(there_, buffer.bytes);
    ASSERT_TRUE(peeked);
    EXPECT_EQ(peeked->receipt, Receipt::packet);
    EXPECT_EQ(peeked->bytes.size(), 24U);
    EXPECT_TRUE(peeked->descriptors);
  }
  ASSERT_EQ(receive(1), Receipt::packet);
  EXPECT_EQ(packet_.descriptors.size(), 1U);
  const auto plain = peek_packet(there_, buffer.bytes);
  ASSERT_TRUE(plain);
  EXPECT_FALSE(plain->descriptors);
  ASSERT_EQ(receive(0), Receipt::packet);
  EXPECT_EQ(peek_packet(there_, buffer.bytes)->receipt, Receipt::would_block);
  here_.reset();
  EXPECT_EQ(peek_packet(there_, buffer.bytes)->receipt, Receipt::end);
}

TEST_F(PacketTest, GroupsOfThePeerAreThisProcesss) {
  const auto groups = groups_of(here_);
  ASSERT_TRUE(groups);
  std::vector<gid_t> own(static_cast<std::size_t>(::getgroups(0, nullptr)));
  own.resize(static_cast<std::size_t>(::getgroups(static_cast<int>(own.size()), own.data())));
  EXPECT_THAT(*groups, testing::UnorderedElementsAreArray(own));
  EXPECT_FALSE(groups_of(FdView(-1)));
}

TEST_F(PacketTest, PeerIsThisProcess) {
  const auto peer = peer_of(here_);
  ASSERT_TRUE(peer);
  EXPECT_EQ(peer->pid, static_cast<std::uint32_t>(::getpid()));
  EXPECT_EQ(peer->uid, ::geteuid());
  EXPECT_FALSE(peer_of(FdView(-1)));
}

}  // namespace
}  // namespace wc::wire
