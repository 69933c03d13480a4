#include "daemon/runtime_dir.hpp"

#include <fstream>
#include <string>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace wc::daemon {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class RuntimeDirTest : public ::testing::Test {
 protected:
  RuntimeDirTest() {
    std::string name = fs::temp_directory_path() / "wc-runtime-XXXXXX";
    base_ = ::mkdtemp(name.data());
  }
  ~RuntimeDirTest() override { fs::remove_all(base_); }

  static mode_t mode_of(const fs::path& path) {
    struct stat info{};
    return ::lstat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
  }
  static bool accepts(const fs::path& path) {
    const Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.native().copy(static_cast<char*>(address.sun_path), sizeof(address.sun_path) - 1);
    return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) ==
           0;
  }

  fs::path base_;
};

TEST_F(RuntimeDirTest, MakesADirectoryThatOnlyItsUserCanEnter) {
  const mode_t before = ::umask(0);  // the modes must not come from it
  const fs::path socket = base_ / "weightcache" / "socket";
  auto dir = RuntimeDir::open({socket, {}});
  ASSERT_TRUE(dir) << dir.error().message;
  auto listening = dir->listen(8);
  ::umask(before);
  ASSERT_TRUE(listening) << listening.error().message;
  EXPECT_EQ(mode_of(base_ / "weightcache"), 0700U);
  EXPECT_EQ(mode_of(socket), 0600U);
  EXPECT_EQ(mode_of(base_ / "weightcache" / "lock"), 0600U);
  EXPECT_TRUE(accepts(socket));
}

TEST_F(RuntimeDirTest, ANarrowUmaskDoesNotShutTheGroupOut) {
  const mode_t before = ::umask(0077);
  const fs::path socket = base_ / "weightcache" / "socket";
  auto dir = RuntimeDir::open({socket, ::getegid()});
  ASSERT_TRUE(dir) << dir.error().message;
  auto listening = dir->listen(8);
  ::umask(before);
  ASSERT_TRUE(listening) << listening.error().message;
  EXPECT_EQ(mode_of(base_ / "weightcache"), 0750U);
  EXPECT_EQ(mode_of(socket), 0660U);
}

TEST_F(RuntimeDirTest, NarrowsADirectoryOfItsOwnUser) {
  fs::create_directory(base_ / "own");
  ::chmod((base_ / "own").c_str(), 0755);
  ASSERT_TRUE(RuntimeDir::open({base_ / "own" / "socket", {}}));
  EXPECT_EQ(mode_of(base_ / "own"), 0700U);
}

TEST_F(RuntimeDirTest, RefusesADirectoryThatOthersCanWrite) {
  fs::create_directory(base_ / "open");
  ::chmod((base_ / "open").c_str(), 01777);
  auto dir = RuntimeDir::open({base_ / "open" / "socket", {}});
  ASSERT_FALSE(dir);
  EXPECT_EQ(dir.error().code, Code::denied);
  EXPECT_THAT(dir.error().message, HasSubstr("mode 1777"));
  EXPECT_EQ(mode_of(base_ / "open"), 01777U);
  EXPECT_TRUE(fs::is_empty(base_ / "open"));
}

TEST_F(RuntimeDirTest, RefusesASymbolicLink) {
  fs::create_directory(base_ / "real");
  fs::create_directory_symlink(base_ / "real", base_ / "link");
  auto dir = RuntimeDir::open({base_ / "link" / "socket", {}});
  ASSERT_FALSE(dir);
  EXPECT_EQ(dir.error().code, Code::denied);
  EXPECT_THAT(dir.error().message, HasSubstr("symbolic link"));
}

TEST_F(RuntimeDirTest, RefusesAnotherUsersDirectory) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
  fs::create_directory(base_ / "theirs");
  ASSERT_EQ(::chown((base_ / "theirs").c_str(), 12345, 12345), 0);
  ::chmod((base_ / "theirs").c_str(), 0700);
  auto dir = RuntimeDir::open({base_ / "theirs" / "socket", {}});
  ASSERT_FALSE(dir);
  EXPECT_EQ(dir.error().code, Code::denied);
  EXPECT_THAT(dir.error().message, HasSubstr("belongs to user 12345"));
}

TEST_F(RuntimeDirTest, RefusesPathsWithoutADirectoryOrName) {
  for (const char* path : {"", "socket", "/tmp/", "/tmp/..", "/tmp/x/lock"}) {
    auto dir = RuntimeDir::open({path, {}});
    ASSERT_FALSE(dir) << path;
    EXPECT_EQ(dir.error().code, Code::invalid_argument) << path;
  }
}

TEST_F(RuntimeDirTest, ASecondDaemonIsToldTheFirstOnesPidAndDisturbsNothing) {
  const fs::path socket = base_ / "weightcache" / "socket";
  auto first = RuntimeDir::open({socket, {}});
  ASSERT_TRUE(first);
  auto listening = first->listen(8);
  ASSERT_TRUE(listening);
  auto second = RuntimeDir::open({socket, {}});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::busy);
  EXPECT_THAT(second.error().message, HasSubstr(format("pid {}", ::getpid())));
  EXPECT_TRUE(accepts(socket));
}

TEST_F(RuntimeDirTest, TheSocketOfADeadDaemonIsReplaced) {
  const fs::path socket = base_ / "weightcache" / "socket";
  {
    auto dead = RuntimeDir::open({socket, {}});
    ASSERT_TRUE(dead);
    ASSERT_TRUE(dead->listen(8));
  }
  EXPECT_FALSE(accepts(socket));
  auto next = RuntimeDir::open({socket, {}});
  ASSERT_TRUE(next) << next.error().message;
  auto listening = next->listen(8);
  ASSERT_TRUE(listening) << listening.error().message;
  EXPECT_TRUE(accepts(socket));
  next->remove_socket();
  EXPECT_FALSE(fs::exists(socket));
}

TEST_F(RuntimeDirTest, AFileThatIsNoSocketIsLeftAlone) {
  const fs::path socket = base_ / "weightcache" / "socket";
  fs::create_directory(base_ / "weightcache");
  std::ofstream(socket) << "precious";
  auto dir = RuntimeDir::open({socket, {}});
  ASSERT_TRUE(dir);
  auto listening = dir->listen(8);
  ASSERT_FALSE(listening);
  EXPECT_EQ(listening.error().code, Code::already_exists);
  EXPECT_EQ(fs::file_size(socket), 8U);
}

TEST_F(RuntimeDirTest, APathLongerThanASocketAddressServes) {
  fs::path deep = base_;
  for (int level = 0; level < 4; ++level) deep /= std::string(60, 'd');
  fs::create_directories(deep);
  auto dir = RuntimeDir::open({deep / "weightcache" / "socket", {}});
  ASSERT_TRUE(dir) << dir.error().message;
  auto listening = dir->listen(8);
  ASSERT_TRUE(listening) << listening.error().message;
  EXPECT_TRUE(fs::is_socket(deep / "weightcache" / "socket"));
}

TEST_F(RuntimeDirTest, ANameThatFitsNoAddressIsRefusedBeforeAnythingIsLoaded) {
  auto dir = RuntimeDir::open({base_ / "weightcache" / std::string(200, 's'), {}});
  ASSERT_FALSE(dir);
  EXPECT_EQ(dir.error().code, Code::invalid_argument);
}

}  // namespace
}  // namespace wc::daemon
