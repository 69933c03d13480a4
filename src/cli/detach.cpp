#include "cli/detach.hpp"

#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include "cli/call.hpp"

namespace wc::cli {
namespace {

// What comes back begins with the code's number: "0\n" and the announcement, or a failure's.
std::string packed(Code code, std::string_view text) {
  return format("{}\n{}", static_cast<int>(code), text);
}

Result<std::string> unpacked(std::string_view text) {
  int number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || rest == text.data() + text.size()) {
    return fail(Code::internal, "the daemon died before it answered; its log may tell why");
  }
  const std::string_view said = text.substr(static_cast<std::size_t>(rest + 1 - text.data()));
  if (number == 0) return std::string(said);
  return Failure(Error{code_of(number), std::string(said), {}});
}

Result<std::string> read_all(FdView fd) {
  std::string text;
  std::array<char, 1024> buffer{};
  while (true) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno("read from the detached process");
    if (got == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

// A socket, not a pipe: writing to one that nobody reads is an error and no signal.
bool send_all(FdView fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

Result<> leave_session(FdView log) {
  if (::setsid() < 0) return fail_errno("setsid");
  if (::chdir("/") != 0) return fail_errno("chdir to \"/\"");
  const Fd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!nothing) return fail_errno("open \"/dev/null\"");
  for (const auto& [from, to] :
       {std::pair{nothing.get(), STDIN_FILENO}, std::pair{nothing.get(), STDOUT_FILENO},
        std::pair{log.get(), STDERR_FILENO}}) {
    if (::dup2(from, to) < 0) return fail_errno("dup2 to descriptor {}", to);
  }
  return {};
}

[[noreturn]] void be_detached(Fd channel, FdView log,
                              const std::function<Result<>(const Announce&)>& body) {
  bool announced = false;
  const Announce announce = [&](const std::string& text) {
    announced = true;
    const bool heard = send_all(channel, packed(Code::ok, text));
    channel.reset();
    return heard;
  };
  auto done = leave_session(log);
  if (done) done = body(announce);
  if (!done) {
    if (!announced) send_all(channel, packed(done.error().code, done.error().message));
    tell_failure(done.error(), false);
  }
  ::_exit(done ? 0 : exit_status(done.error().code));
}

}  // namespace

Result<std::string> run_detached(FdView log, const std::function<Result<>(const Announce&)>& body) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return fail_errno("socketpair");
  }
  Fd mine(ends[0]);
  Fd theirs(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return fail_errno("fork");
  if (child == 0) {
    mine.reset();
    be_detached(std::move(theirs), log, body);
  }
  theirs.reset();
  const std::string said = TRY(read_all(mine));
  return unpacked(said);
}

}  // namespace wc::cli
