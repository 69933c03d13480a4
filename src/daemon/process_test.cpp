#include "daemon/process.hpp"

#include <fstream>
#include <iterator>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace wc::daemon {
namespace {

// What the function returns in a child of its own; -1: it did not end in order.
template <typename Function>
int in_child(Function function) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(function());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool is_open(int number) { return ::fcntl(number, F_GETFD) >= 0; }

TEST(ProcessTest, AllButTheKeptAndTheStandardThreeAreClosed) {
  EXPECT_EQ(in_child([] {
              for (const int number : {50, 51, 52, 90}) ::dup2(0, number);
              close_all_but({52, 50, 50});
              const bool kept =
                  is_open(0) && is_open(1) && is_open(2) && is_open(50) && is_open(52);
              const bool closed = !is_open(3) && !is_open(51) && !is_open(53) && !is_open(90);
              return kept && closed ? 0 : 1;
            }),
            0);
}

TEST(ProcessTest, ClosedStandardDescriptorsAreOpenedElsewhere) {
  EXPECT_EQ(in_child([] {
              Fd(0).reset();
              Fd(2).reset();
              return open_standard_descriptors() && is_open(0) && is_open(2) ? 0 : 1;
            }),
            0);
}

TEST(ProcessTest, TheTitleIsWhatTheProcessTableShows) {
  EXPECT_EQ(in_child([] {
              set_process_title("weightcache: test");
              std::ifstream file("/proc/self/cmdline");
              const std::string command{std::istreambuf_iterator<char>(file), {}};
              return command.starts_with("weightcache: test") ? 0 : 1;
            }),
            0);
}

TEST(ProcessTest, AChildOfADeadParentDies) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  const pid_t parent = ::fork();
  if (parent == 0) {
    const pid_t self = ::getpid();
    if (::fork() == 0) {
      die_with_parent(self);
      ::pause();
    }
    ::_exit(0);
  }
  write_end.reset();
  ::waitpid(parent, nullptr, 0);
  char byte = 0;
  EXPECT_EQ(::read(read_end.get(), &byte, 1), 0);  // the last holder of the other end has gone
}

TEST(ProcessTest, OwnMemoryIsWhatIsPrivateAndNotWhatIsShared) {
  constexpr std::size_t kBytes = 32U << 20;
  EXPECT_EQ(in_child([] {
              const std::uint64_t before = own_memory_bytes();
              auto* shared = static_cast<char*>(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                                                       MAP_SHARED | MAP_ANONYMOUS, -1, 0));
              for (std::size_t at = 0; at < kBytes; at += 4096) shared[at] = 1;
              const std::uint64_t with_shared = own_memory_bytes();
              std::vector<char> own(kBytes, 'x');
              const std::uint64_t with_own = own_memory_bytes();
              const bool ignored = with_shared < before + kBytes / 2;
              return before > 0 && ignored && with_own > before + kBytes / 2 ? 0 : 1;
            }),
            0);
}

TEST(ProcessTest, TheLimitOfOpenFilesRisesToTheHardOne) {
  EXPECT_EQ(in_child([] {
              rlimit limit{};
              ::getrlimit(RLIMIT_NOFILE, &limit);
              limit.rlim_cur = 64;
              ::setrlimit(RLIMIT_NOFILE, &limit);
              return raise_descriptor_limit() == limit.rlim_max ? 0 : 1;
            }),
            0);
}

TEST(ProcessTest, APidfdIsReadableWhenItsProcessHasEnded) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  const auto process = pidfd_of(child);
  ASSERT_TRUE(process);
  siginfo_t info{};
  EXPECT_EQ(::waitid(P_PIDFD, static_cast<id_t>(process->get()), &info, WEXITED), 0);
  EXPECT_EQ(info.si_pid, child);
}

}  // namespace
}  // namespace wc::daemon
