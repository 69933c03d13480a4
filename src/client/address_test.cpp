#include "client/address.hpp"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/temp_folder.hpp"

namespace wc::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Environment user() {
  Environment environment;
  environment.uid = 1000;
  return environment;
}

TEST(AddressTest, WhatIsAskedForIsTriedAlone) {
  Environment environment = user();
  environment.socket = "/from/environment";
  EXPECT_THAT(sockets_to_try("/asked", environment), ElementsAre("/asked"));
  EXPECT_THAT(sockets_to_try("", environment), ElementsAre("/from/environment"));
  EXPECT_EQ(socket_to_listen_on("/asked", environment), "/asked");
  EXPECT_EQ(socket_to_listen_on("", environment), "/from/environment");
}

TEST(AddressTest, TrustedUsersAreNumbersBetweenCommas) {
  EXPECT_THAT(*uids_in(""), ElementsAre());
  EXPECT_THAT(*uids_in("1000"), ElementsAre(1000U));
  EXPECT_THAT(*uids_in("1000,0"), ElementsAre(1000U, 0U));
  for (const char* wrong : {"alice", ",", "-1", "1 2", "4294967296"}) {
    const auto uids = uids_in(wrong);
    ASSERT_FALSE(uids) << wrong;
    EXPECT_EQ(uids.error().code, Code::invalid_argument) << wrong;
  }
}

TEST(AddressTest, UsersSocketComesBeforeTheSystems) {
  Environment environment = user();
  EXPECT_THAT(sockets_to_try("", environment),
              ElementsAre("/tmp/weightcache-1000/socket", "/run/weightcache/socket"));
  EXPECT_EQ(socket_to_listen_on("", environment), "/tmp/weightcache-1000/socket");
  environment.runtime_dir = "/run/user/1000";
  EXPECT_THAT(sockets_to_try("", environment),
              ElementsAre("/run/user/1000/weightcache/socket", "/run/weightcache/socket"));
  EXPECT_EQ(socket_to_listen_on("", environment), "/run/user/1000/weightcache/socket");
}

TEST(AddressTest, RootListensWhereEveryoneLooks) {
  Environment root = user();
  root.uid = 0;
  root.runtime_dir = "/run/user/0";
  EXPECT_EQ(socket_to_listen_on("", root), "/run/weightcache/socket");
}

TEST(AddressTest, TrustIsOwnRootsOrGiven) {
  const std::uint32_t friends[] = {7, 8};
  EXPECT_TRUE(is_trusted(0, 1000, {}));
  EXPECT_TRUE(is_trusted(1000, 1000, {}));
  EXPECT_FALSE(is_trusted(7, 1000, {}));
  EXPECT_TRUE(is_trusted(8, 1000, friends));
}

class SocketPlaceTest : public testing::Test {
 protected:
  Result<SocketPlace> open(const std::string& path) {
    return SocketPlace::open(path, ::geteuid(), {});
  }
  void expect_refused(const std::string& path, Code code, const std::string& text) {
    const auto place = open(path);
    ASSERT_FALSE(place);
    EXPECT_EQ(place.error().code, code) << place.error().message;
    EXPECT_THAT(place.error().message, HasSubstr(text));
  }
  support::TempFolder folder_;
};

TEST_F(SocketPlaceTest, DirectoryThatOthersCanWriteIsDenied) {
  for (const mode_t mode : {0777U, 0770U, 0702U, 0720U}) {
    ASSERT_EQ(::chmod(folder_.path().c_str(), mode), 0);
    expect_refused(folder_ / "socket", Code::denied, "others than its owner can write it");
  }
  for (const mode_t mode : {0700U, 0750U, 0711U, 0755U}) {
    ASSERT_EQ(::chmod(folder_.path().c_str(), mode), 0);
    EXPECT_TRUE(open(folder_ / "socket"));
  }
}

TEST_F(SocketPlaceTest, DirectoryOfSomebodyElseIsDeniedUnlessTrusted) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
  ASSERT_EQ(::chown(folder_.path().c_str(), 4321, 4321), 0);
  expect_refused(folder_ / "socket", Code::denied, "belongs to uid 4321");
  const std::uint32_t friends[] = {4321};
  EXPECT_TRUE(SocketPlace::open(folder_ / "socket", ::geteuid(), friends));
}

TEST_F(SocketPlaceTest, SymbolicLinkIsDenied) {
  std::filesystem::create_directory(folder_ / "real");
  std::filesystem::create_directory_symlink(folder_ / "real", folder_ / "link");
  EXPECT_TRUE(open(folder_ / "real/socket"));
  expect_refused(folder_ / "link/socket", Code::denied, "is a symbolic link");
}

TEST_F(SocketPlaceTest, WhatIsNoDirectoryOrNotThereIsToldApart) {
  folder_.write("file", "");
  expect_refused(folder_ / "file/socket", Code::denied, "Not a directory");
  expect_refused(folder_ / "nowhere/socket", Code::disconnected, "No such file");
}

TEST_F(SocketPlaceTest, PathWithoutAUsableNameIsTheCallersFault) {
  expect_refused("", Code::invalid_argument, "names no socket");
  expect_refused(folder_ / "", Code::invalid_argument, "names no socket");
  expect_refused(folder_ / std::string(81, 'x'), Code::invalid_argument, "81 bytes");
  expect_refused(folder_ / std::string("a\0b", 3), Code::invalid_argument, "names no socket");
}

TEST_F(SocketPlaceTest, PathLongerThanASocketsAddressServes) {
  std::string path = folder_.path().string();
  for (int n = 0; n < 5; ++n) path += "/" + std::string(60, 'd');
  std::filesystem::create_directories(path);
  path += "/" + std::string(80, 's');
  const auto place = open(path);
  ASSERT_TRUE(place) << place.error().message;
  const Fd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const auto* address = reinterpret_cast<const sockaddr*>(&place->address());
  ASSERT_EQ(::bind(listener.get(), address, sizeof place->address()), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  const Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::connect(socket.get(), address, sizeof place->address()), 0);
  EXPECT_TRUE(std::filesystem::is_socket(path));
}

TEST_F(SocketPlaceTest, PathRelativeToTheWorkingDirectoryServes) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder_.path());
  EXPECT_TRUE(open("socket"));
  std::filesystem::current_path(before);
}

}  // namespace
}  // namespace wc::client
