#include "tests/contract/child.hpp"

#include <array>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace wc::contract {
namespace {

// What travels: a descriptor beside an empty body, or an IPC handle's fields.
struct Body {
  std::uint64_t offset = 0;
  std::uint64_t counter_offset = 0;
  std::uint32_t handle_bytes = 0;
  std::uint32_t event_bytes = 0;
  std::uint32_t counter_bytes = 0;
  std::uint32_t is_ipc = 0;
  std::array<std::byte, 512> data = {};
};

Body pack(const memory::IpcHandle& ipc) {
  Body body;
  body.is_ipc = 1;
  body.offset = ipc.offset_bytes;
  body.counter_offset = ipc.counter_offset;
  body.handle_bytes = static_cast<std::uint32_t>(ipc.handle.size());
  body.event_bytes = static_cast<std::uint32_t>(ipc.event.size());
  body.counter_bytes = static_cast<std::uint32_t>(ipc.counter.size());
  std::byte* to = body.data.data();
  std::memcpy(to, ipc.handle.data(), ipc.handle.size());
  std::memcpy(to + body.handle_bytes, ipc.event.data(), ipc.event.size());
  std::memcpy(to + body.handle_bytes + body.event_bytes, ipc.counter.data(), ipc.counter.size());
  return body;
}

memory::IpcHandle unpack(const Body& body) {
  memory::IpcHandle ipc;
  const std::byte* from = body.data.data();
  ipc.offset_bytes = body.offset;
  ipc.counter_offset = body.counter_offset;
  ipc.handle.assign(from, from + body.handle_bytes);
  from += body.handle_bytes;
  ipc.event.assign(from, from + body.event_bytes);
  from += body.event_bytes;
  ipc.counter.assign(reinterpret_cast<const char*>(from), body.counter_bytes);
  return ipc;
}

}  // namespace

Result<Child> Child::start(const std::string& device, const std::string& verb,
                           const std::vector<std::uint64_t>& numbers) {
  std::array<int, 2> ends = {};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return fail_errno("socketpair");
  }
  Fd ours(ends[0]);
  const Fd theirs(ends[1]);
  std::vector<std::string> words = {"/proc/self/exe", "--child", device, verb,
                                    std::to_string(theirs.get())};
  for (const auto number : numbers) words.push_back(std::to_string(number));
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  // A duplicate onto itself takes close-on-exec off, in the child alone.
  ::posix_spawn_file_actions_adddup2(&actions, theirs.get(), theirs.get());
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return fail_os(Code::io, error, "posix_spawn");
  return Child(pid, std::move(ours));
}

Child::~Child() {
  if (pid_ < 0) return;
  kill();
  (void)wait();
}

void Child::kill() {
  if (pid_ > 0) ::kill(pid_, SIGKILL);  // -1 would be everybody
}

int Child::wait() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

Result<> send_handle(FdView socket, const memory::Handle& handle) {
  const auto* const ipc = std::get_if<memory::IpcHandle>(&handle);
  Body body = ipc != nullptr ? pack(*ipc) : Body();
  iovec part = {&body, sizeof body};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (ipc == nullptr) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    const int number = std::get<Fd>(handle).get();
    std::memcpy(CMSG_DATA(header), &number, sizeof number);
  }
  if (::sendmsg(socket.get(), &message, MSG_NOSIGNAL) < 0) return fail_errno("sendmsg");
  return {};
}

Result<memory::Handle> receive_handle(FdView socket) {
  Body body;
  iovec part = {&body, sizeof body};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = ::recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC);
  if (got < 0) return fail_errno("recvmsg");
  if (got == 0) return fail(Code::disconnected, "the other process is gone");
  if (body.is_ipc != 0) return memory::Handle(unpack(body));
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header == nullptr) return fail(Code::corrupt, "no descriptor came");
  int number = -1;
  std::memcpy(&number, CMSG_DATA(header), sizeof number);
  return memory::Handle(Fd(number));
}

}  // namespace wc::contract
