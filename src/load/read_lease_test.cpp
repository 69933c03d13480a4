#include "load/read_lease.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/file_hooks.hpp"
#include "tests/support/temp_folder.hpp"

namespace wc::load {
namespace {

class ReadLeaseTest : public testing::Test {
 protected:
  ReadLeaseTest() { folder_.write("file", "bytes"); }
  [[nodiscard]] Fd open(int flags) const {
    return Fd(::open((folder_ / "file").c_str(), flags | O_CLOEXEC));
  }

  support::TempFolder folder_;
  support::FileHooks hooks_;
};

TEST_F(ReadLeaseTest, HoldsWhileNobodyWrites) {
  const Fd fd = open(O_RDONLY);
  const ReadLease lease(hooks_, fd);
  ASSERT_TRUE(lease.held());
  EXPECT_FALSE(lease.broken());
  const Fd reader = open(O_RDONLY);
  EXPECT_FALSE(lease.broken());
}

TEST_F(ReadLeaseTest, AWriterBreaksItWithoutASignal) {
  const Fd fd = open(O_RDONLY);
  const ReadLease lease(hooks_, fd);
  ASSERT_TRUE(lease.held());
  const pid_t child = ::fork();
  if (child == 0) {
    // Refused while the lease is there, but told to its holder.
    const int writer = ::open((folder_ / "file").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    ::_exit(writer < 0 && errno == EWOULDBLOCK ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(lease.broken());
}

TEST_F(ReadLeaseTest, ItsEndLetsTheWriterIn) {
  const Fd fd = open(O_RDONLY);
  {
    const ReadLease lease(hooks_, fd);
  }
  const Fd writer = open(O_WRONLY | O_NONBLOCK);
  EXPECT_TRUE(writer);
}

TEST_F(ReadLeaseTest, IsRefusedWhereSomebodyWritesAlready) {
  const Fd writer = open(O_WRONLY);
  const Fd fd = open(O_RDONLY);
  const ReadLease lease(hooks_, fd);
  EXPECT_FALSE(lease.held());
  EXPECT_FALSE(lease.broken()) << "what was never held can't break";
}

TEST_F(ReadLeaseTest, IsRefusedWhereTheSystemRefuses) {
  hooks_.grant_leases = false;
  const Fd fd = open(O_RDONLY);
  const ReadLease lease(hooks_, fd);
  EXPECT_FALSE(lease.held());
  EXPECT_FALSE(lease.broken());
}

}  // namespace
}  // namespace wc::load
