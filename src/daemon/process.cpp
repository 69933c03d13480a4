#include "daemon/process.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace wc::daemon {
namespace {

std::string read_text(const char* path) {
  const Fd file(::open(path, O_RDONLY | O_CLOEXEC));
  std::string text(8192, '\0');
  const auto got = file ? ::read(file.get(), text.data(), text.size()) : 0;
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return text;
}

std::vector<std::uint64_t> numbers_in(std::string_view text) {
  std::vector<std::uint64_t> numbers;
  while (!text.empty()) {
    const auto end = std::min(text.find(' '), text.size());
    std::uint64_t number = 0;  // what is no number counts as one, so that places stay
    std::from_chars(text.data(), text.data() + end, number);
    numbers.push_back(number);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return numbers;
}

void close_between(unsigned first, unsigned last) {
  if (first > last) return;
  if (::syscall(SYS_close_range, first, last, 0) == 0) return;
  for (unsigned number = first; number <= std::min(last, 65'536U); ++number) {
    Fd(static_cast<int>(number)).reset();
  }
}

}  // namespace

Result<Fd> pidfd_of(pid_t child) {
  Fd process(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  if (!process) return fail_errno("pidfd_open of child {}", child);
  return process;
}

void die_with_parent(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
}

void close_all_but(std::vector<int> kept) {
  std::ranges::sort(kept);
  unsigned next = 3;
  for (const int number : kept) {
    const auto stays = static_cast<unsigned>(number);
    if (number < 0 || stays < next) continue;
    close_between(next, stays - 1);
    next = stays + 1;
  }
  close_between(next, ~0U);
}

void set_process_title(std::string_view title) {
  std::array<char, 16> name{};
  title.copy(name.data(), name.size() - 1);
  ::prctl(PR_SET_NAME, name.data());
  // Where the kernel put the command line, from fields 48 and 49 of proc(5) stat; what follows the
  // program's name in parentheses begins with field 3.
  const std::string stat = read_text("/proc/self/stat");
  const auto after = stat.rfind(") ");
  if (after == std::string::npos) return;
  const auto fields = numbers_in(std::string_view(stat).substr(after + 2));
  if (fields.size() < 47 || fields[45] == 0 || fields[46] <= fields[45]) return;
  auto* command = reinterpret_cast<char*>(fields[45]);
  const std::size_t room = fields[46] - fields[45];
  std::memset(command, 0, room);
  title.copy(command, room - 1);
}

void reset_signals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGCHLD}) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

std::uint64_t own_memory_bytes() {
  const auto pages = numbers_in(read_text("/proc/self/statm"));  // size resident shared ...
  if (pages.size() < 3 || pages[1] < pages[2]) return 0;
  return (pages[1] - pages[2]) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

Result<> open_standard_descriptors() {
  for (int number = 0; number <= 2; ++number) {
    if (::fcntl(number, F_GETFD) >= 0) continue;
    // The lowest free number, which is this one.
    Fd null(::open("/dev/null", O_RDWR | O_NOCTTY));
    if (!null) return fail_errno("open \"/dev/null\"");
    static_cast<void>(null.release());
  }
  return {};
}

std::uint64_t raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : before;
}

}  // namespace wc::daemon
