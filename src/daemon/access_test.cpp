// Who may do what, with real users: the daemon of one, clients of others.
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/publish_case_test.hpp"

namespace wc::daemon {
namespace {

constexpr uid_t kReader = 54'321;
constexpr uid_t kPublisher = 54'322;
constexpr uid_t kStranger = 54'323;
constexpr gid_t kGroup = 54'330;

class AccessTest : public PublishCase {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
    DaemonOptions options;
    options.serve.access.read.users = {kReader};
    options.serve.access.publish.groups = {kGroup};
    start_for_others(options);
  }

  void start_for_others(const DaemonOptions& options) {
    start(options);
    ASSERT_EQ(::chmod(socket().parent_path().parent_path().c_str(), 0755), 0);
  }

  // SO_PEERCRED and SO_PEERGROUPS are of the moment of connecting.
  RawClient connect_as(uid_t user, std::vector<gid_t> groups = {}) {
    EXPECT_EQ(::setgroups(groups.size(), groups.data()), 0);
    EXPECT_EQ(::setegid(user), 0);
    EXPECT_EQ(::seteuid(user), 0);
    RawClient client(socket());
    EXPECT_EQ(::seteuid(0), 0);
    EXPECT_EQ(::setegid(0), 0);
    EXPECT_EQ(::setgroups(0, nullptr), 0);
    EXPECT_TRUE(client.connected());
    return client;
  }

  static mode_t mode_of(const std::filesystem::path& path) {
    struct stat info{};
    return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
  }
};

TEST_F(AccessTest, WithAListEverybodyReachesTheSocketAndNobodyCanReplaceIt) {
  EXPECT_EQ(mode_of(socket().parent_path()), 0711U);
  EXPECT_EQ(mode_of(socket()), 0666U);
  EXPECT_EQ(mode_of(socket().parent_path() / "lock"), 0600U);
}

TEST_F(AccessTest, WhoIsNotListedIsRefusedBeforeAByteIsRead) {
  RawClient stranger = connect_as(kStranger);
  const Reply reply = stranger.receive();  // nothing has been sent
  ASSERT_EQ(reply.kind, Reply::Kind::message);
  EXPECT_EQ(reply.request, 0U);
  const auto words = reply.as<fb::DoneT>();
  ASSERT_FALSE(words);
  EXPECT_EQ(words.error().code, Code::denied);
  EXPECT_THAT(words.error().message, HasSubstr("user 54323"));
}

TEST_F(AccessTest, AReaderReadsAndDoesNothingElse) {
  RawClient owner = connect();
  ASSERT_TRUE(publish(owner));
  RawClient reader = connect_as(kReader);
  ASSERT_TRUE(reader.hello());
  EXPECT_TRUE(reader.call<fb::StatusReportT>(fb::StatusT()));
  const auto attached = attach(reader, "sample");
  ASSERT_TRUE(attached);
  EXPECT_EQ(attached->entry->publisher_uid, 0U);
  RawPublisher publisher(reader, sample_of("other"));
  EXPECT_EQ(publisher.begin().error().code, Code::denied);
  EXPECT_EQ(evict(reader, "sample").error().code, Code::denied);
  EXPECT_EQ(reader.call<fb::StoppingT>(fb::StopT()).error().code, Code::denied);
  ASSERT_TRUE(detach(reader, attached->lease));
  ASSERT_TRUE(evict(owner, "sample"));
}

TEST_F(AccessTest, ASupplementaryGroupGivesItsRightAndReadersLearnWhoPublished) {
  RawClient publisher = connect_as(kPublisher, {1, 2, kGroup});
  ASSERT_TRUE(publisher.hello());
  ASSERT_TRUE(publish(publisher));
  EXPECT_EQ(evict(publisher, "sample").error().code, Code::denied);
  RawClient reader = connect_as(kReader);
  ASSERT_TRUE(reader.hello());
  const auto attached = attach(reader, "sample");
  ASSERT_TRUE(attached);
  EXPECT_EQ(attached->entry->publisher_uid, kPublisher);
  ASSERT_TRUE(detach(reader, attached->lease));
  RawClient owner = connect();
  ASSERT_TRUE(evict(owner, "sample"));
}

TEST_F(AccessTest, AGroupThatMayEnterMayRead) {
  EXPECT_EQ(daemon().end(SIGTERM), 0);
  DaemonOptions options;
  options.serve.group = kGroup;
  start_for_others(options);
  EXPECT_EQ(mode_of(socket().parent_path()), 0750U);
  RawClient member = connect_as(kReader, {kGroup});
  ASSERT_TRUE(member.hello());
  EXPECT_TRUE(member.call<fb::StatusReportT>(fb::StatusT()));
  RawPublisher publisher(member, {});
  EXPECT_EQ(publisher.begin().error().code, Code::denied);
}

// A connection that goes on has the rights that it had, and nobody's memory becomes root's.
TEST_F(AccessTest, RightsAndPublishersAreTheSameAfterTheDaemonsDeath) {
  stays_resident();
  EXPECT_EQ(daemon().end(SIGTERM), 0);
  DaemonOptions options;
  options.serve.access.read.users = {kReader};
  options.serve.access.publish.groups = {kGroup};
  options.supervised = true;
  start_for_others(options);
  RawClient publisher = connect_as(kPublisher, {kGroup});
  const auto welcome = publisher.hello();
  ASSERT_TRUE(welcome);
  ASSERT_TRUE(publish(publisher));
  ASSERT_TRUE(attach(publisher, "sample"));
  RawClient reader = connect_as(kReader);
  ASSERT_TRUE(reader.hello());
  ASSERT_TRUE(attach(reader, "sample"));
  ASSERT_EQ(::kill(welcome->pid, SIGKILL), 0);
  PublishedSample other = sample_of("other");
  other.name = "other";
  ASSERT_TRUE(publish(publisher, other));
  EXPECT_EQ(evict(publisher, "sample").error().code, Code::denied);
  RawPublisher refused(reader, sample_of("third"));
  EXPECT_EQ(refused.begin().error().code, Code::denied);
  const auto attached = attach(reader, "sample");
  ASSERT_TRUE(attached);
  EXPECT_EQ(attached->entry->publisher_uid, kPublisher);
}

}  // namespace
}  // namespace wc::daemon
