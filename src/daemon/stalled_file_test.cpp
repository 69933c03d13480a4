// A descriptor on a file system that stalls freezes whoever asks for its size or closes it. Here
// one is sent to the daemon in every way there is.
#include "tests/support/stalled_file.hpp"

#include <optional>

#include "daemon/publish_case_test.hpp"
#include "memory/types.hpp"

namespace wc::daemon {
namespace {

class StalledFileTest : public PublishCase {
 protected:
  void SetUp() override {
    DaemonOptions options;
    options.serve.limits.take = std::chrono::milliseconds(300);
    start(options);
    file_.emplace(socket().parent_path() / "stalled");  // after the daemon: it inherits nothing
    if (!file_->made()) GTEST_SKIP() << "no FUSE mount can be made here (/dev/fuse, as root)";
  }

  struct Loader {
    RawClient client;
    std::uint64_t load = 0;
  };
  // With a load on a GPU, so that a descriptor is due.
  Loader loader(int number) {
    Loader made{connect()};
    PublishedSample sample = sample_of(format("stalled-{}", number));
    sample.name = sample.content.source;
    sample.device = "GPU-00000000-0000-0000-0000-000000000001";
    auto begin = RawPublisher(made.client, sample).begin_message();
    begin.transport = static_cast<std::uint8_t>(memory::Transport::vmm_fd);
    const auto granted = made.client.call<fb::GrantedT>(begin);
    EXPECT_TRUE(granted);
    if (!granted) return made;
    made.load = granted->load;
    fb::ReserveT reserve;
    reserve.load = made.load;
    reserve.segments = {kMiB};
    EXPECT_TRUE(made.client.call<fb::ReservedT>(reserve));
    return made;
  }

  // False: the connection has ended.
  bool send_file(Loader& loader) {
    fb::SupplyT supply;
    supply.load = loader.load;
    supply.segment = std::make_unique<fb::SegmentInfoT>();
    supply.segment->bytes = kMiB;
    supply.segment->handle.Set(fb::DescriptorHandleT());
    const FdView view = file_->file();
    return loader.client.send(supply, std::span(&view, 1)) != 0;
  }

  static Error last_words(RawClient& client) {
    const Reply reply = client.receive();
    EXPECT_EQ(reply.kind, Reply::Kind::message);
    EXPECT_EQ(reply.request, 0U);
    const auto words = reply.as<fb::DoneT>();
    EXPECT_EQ(client.receive().kind, Reply::Kind::end);
    return words ? Error{} : words.error();
  }

  // Event loop and helper do their work.
  void expect_service() {
    RawClient client = connect();
    ASSERT_TRUE(client.call<fb::StatusReportT>(fb::StatusT()));
    ASSERT_TRUE(publish(client));
    ASSERT_TRUE(evict(client, "sample"));
    EXPECT_TRUE(eventually([&] { return cpu(client).releasing_bytes == 0; }));
  }

  std::optional<support::StalledFile> file_;  // goes after the daemon has ended
};

TEST_F(StalledFileTest, InPlaceOfMemoryItEndsItsSendersConnectionAlone) {
  Loader sender = loader(0);
  file_->stall();
  ASSERT_TRUE(send_file(sender));
  EXPECT_EQ(last_words(sender.client).code, Code::timed_out);
  expect_service();
}

TEST_F(StalledFileTest, AFileThatAProcessAnswersForIsRefusedBeforeItStalls) {
  Loader sender = loader(0);
  ASSERT_TRUE(send_file(sender));
  const Error error = last_words(sender.client);
  EXPECT_EQ(error.code, Code::invalid_argument);
  EXPECT_THAT(error.message, HasSubstr("another process"));
  file_->stall();
  expect_service();
}

TEST_F(StalledFileTest, WhoHasHeldSeveralOfTheHelpersChildrenMaySendNoMore) {
  std::vector<Loader> senders;
  for (int count = 0; count < 6; ++count) senders.push_back(loader(count));
  file_->stall();
  for (Loader& sender : senders) ASSERT_TRUE(send_file(sender));
  int stalled = 0;
  int denied = 0;
  for (Loader& sender : senders) {
    const Code code = last_words(sender.client).code;
    stalled += code == Code::timed_out ? 1 : 0;
    denied += code == Code::denied ? 1 : 0;
  }
  EXPECT_EQ(stalled, 4);
  EXPECT_EQ(denied, 2);
  expect_service();
}

TEST_F(StalledFileTest, WhereNoDescriptorIsDueItNeverReachesTheDaemon) {
  RawClient client = connect();
  file_->stall();
  const FdView view = file_->file();
  client.send(fb::StatusT(), std::span(&view, 1));
  // The kernel refuses it (6.16 and later), or the daemon what came without it.
  const Reply reply = client.receive(std::chrono::milliseconds(2000));
  EXPECT_NE(reply.type, fb::Body::StatusReport);
  expect_service();
}

TEST_F(StalledFileTest, LeftUnreadItGoesWithItsConnection) {
  Loader sender = loader(0);
  file_->stall();
  sender.client.send_bytes(std::vector<std::byte>(16, std::byte{0xff}));
  static_cast<void>(send_file(sender));  // what is garbage may have been seen by then
  sender.client.disconnect();
  expect_service();
}

}  // namespace
}  // namespace wc::daemon
