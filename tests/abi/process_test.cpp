#include <thread>

#include <sys/wait.h>

#include "tests/abi/abi_fixture.hpp"

namespace wc::abi {
namespace {

class ProcessTest : public AbiTest {
 protected:
  /// Runs `body` in a forked child; true where it returned true there.
  static bool in_child(const std::function<bool()>& body) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(body() ? 0 : 1);
    int status = -1;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
};

TEST_F(ProcessTest, ThreadsShareAConnection) {
  Connection connection = connect();
  publish_bytes(connection, "x", "s", "original");
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        const Attachment weights = connection.attach("x");
        EXPECT_EQ(bytes_of(weights[0]), "original");
        EXPECT_FALSE(connection.list().empty());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(connection.leases().empty());
}

TEST_F(ProcessTest, EachThreadHasItsOwnLastError) {
  Connection connection = connect();
  EXPECT_EQ(code_of([&] { (void)connection.attach("mine"); }), WC_NOT_FOUND);
  const std::string mine = wc_last_error_message();
  std::thread([&] {
    EXPECT_EQ(wc_last_error_code(), WC_OK);
    EXPECT_EQ(code_of([&] { (void)connection.attach("theirs"); }), WC_NOT_FOUND);
    EXPECT_THAT(wc_last_error_message(), HasSubstr("theirs"));
  }).join();
  EXPECT_EQ(wc_last_error_message(), mine);
  EXPECT_THAT(mine, HasSubstr("mine"));
}

TEST_F(ProcessTest, AForkedChildReadsOnAndTheLeaseIsItsParents) {
  Connection connection = connect();
  publish_bytes(connection, "x", "s", "original");
  auto weights = std::make_unique<Attachment>(connection.attach("x"));
  EXPECT_TRUE(in_child([&] {
    if (bytes_of((*weights)[0]) != "original") return false;
    // Nothing of the parent's can be used, and nothing hangs.
    if (code_of([&] { (void)connection.attach("x"); }) == WC_OK) return false;
    if (code_of([&] { (void)connection.status(); }) == WC_OK) return false;
    Connection own = connect();
    const Attachment again = own.attach("x");
    if (bytes_of(again[0]) != "original") return false;
    if (own.leases().size() != 2) return false;
    weights.reset();  // frees the child's copy, not the parent's lease
    return own.leases().size() == 2;
  }));
  EXPECT_EQ(connection.leases().size(), 1U);
  EXPECT_EQ(bytes_of((*weights)[0]), "original");
}

TEST_F(ProcessTest, ALeaseEndsWithTheProcessThatTookItThoughAChildLivesOn) {
  Connection watcher = connect();
  publish_bytes(watcher, "x", "s", "original");
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Fd released(ends[0]);
  Fd holding(ends[1]);
  // A process attaches and forks a child, which lives until the pipe is closed; then it dies.
  EXPECT_TRUE(in_child([&] {
    Connection own = connect();
    const Attachment weights = own.attach("x");
    if (watcher.get() == nullptr || connect().leases().size() != 1) return false;
    if (::fork() == 0) {
      holding.reset();
      char byte = 0;
      ::_exit(::read(released.get(), &byte, 1) == 0 && bytes_of(weights[0]) == "original" ? 0 : 1);
    }
    ::_exit(0);
  }));
  EXPECT_TRUE(support::eventually([&] { return watcher.leases().empty(); }));
  holding.reset();
}

TEST_F(ProcessTest, AKilledReadersLeaseEnds) {
  Connection connection = connect();
  publish_bytes(connection, "x", "s", "original");
  EXPECT_FALSE(in_child([&] {
    const auto own = std::make_unique<Connection>(connect("the-victim"));
    const Attachment weights = own->attach("x");
    const auto leases = own->leases();
    if (leases.size() != 1 || leases[0].label != "the-victim") ::_exit(0);
    ::kill(::getpid(), SIGKILL);
    return true;
  }));
  EXPECT_TRUE(support::eventually([&] { return connection.leases().empty(); }));
}

TEST_F(ProcessTest, ADeadDaemonIsSaidToBeGone) {
  Connection connection = connect();
  publish_bytes(connection, "x", "s", "original");
  daemon().end(SIGKILL);
  daemon_is_gone();
  EXPECT_EQ(code_of([&] { (void)connection.attach("x"); }), WC_DISCONNECTED);
  EXPECT_EQ(code_of([&] { (void)connect(); }), WC_DISCONNECTED);
}

}  // namespace
}  // namespace wc::abi
