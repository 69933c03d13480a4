// A file of a FUSE file system whose server can be told to answer nothing any more: from then on
// whoever asks for its size or closes a copy of it waits until the server is gone, beyond SIGKILL.
// The server is a process of its own, in a mount namespace of its own.
#pragma once

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>

#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.hpp"
#include "wire/packet.hpp"

namespace wc::support {

class StalledFile {
 public:
  /// `mount_point` is made. Whether it can be had here says made().
  explicit StalledFile(const std::filesystem::path& mount_point) {
    std::ofstream(mount_point) << "";
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return;
    control_ = Fd(ends[0]);
    Fd theirs(ends[1]);
    server_ = ::fork();
    if (server_ == 0) serve(mount_point, std::move(theirs));
    theirs.reset();
    pollfd ready{control_.get(), POLLIN, 0};
    const auto buffer = std::make_unique<wire::PacketBuffer>();
    wire::Packet packet;
    if (::poll(&ready, 1, 10'000) != 1) return;
    if (!wire::receive_packet(control_, buffer->bytes, 1, packet)) return;
    if (!packet.descriptors.empty()) file_ = std::move(packet.descriptors[0]);
  }
  StalledFile(const StalledFile&) = delete;
  StalledFile& operator=(const StalledFile&) = delete;
  // Before the file is closed, or that would not come to an end.
  ~StalledFile() {
    if (server_ <= 0) return;
    ::kill(server_, SIGKILL);
    ::waitpid(server_, nullptr, 0);
  }

  [[nodiscard]] bool made() const { return static_cast<bool>(file_); }
  [[nodiscard]] FdView file() const { return file_; }
  /// From now on nothing is answered.
  void stall() const {
    char byte = 's';
    static_cast<void>(::send(control_.get(), &byte, 1, 0) == 1 &&
                      ::recv(control_.get(), &byte, 1, 0) == 1);
  }

 private:
  [[noreturn]] static void serve(const std::filesystem::path& mount_point, Fd control) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    Fd fuse(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
    const std::string options = "fd=" + std::to_string(fuse.get()) +
                                ",rootmode=100644,user_id=" + std::to_string(::getuid()) +
                                ",group_id=" + std::to_string(::getgid()) + ",allow_other";
    if (!fuse || ::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("stalled", mount_point.c_str(), "fuse", MS_NOSUID | MS_NODEV, options.c_str())) {
      ::_exit(1);
    }
    if (::fork() == 0) hand_out(mount_point, control, std::move(fuse));
    bool stalled = false;
    for (;;) {
      pollfd ready[2] = {{fuse.get(), POLLIN, 0}, {control.get(), POLLIN, 0}};
      ::poll(ready, 2, -1);
      char byte = 0;
      if ((ready[1].revents & POLLIN) != 0 && ::recv(control.get(), &byte, 1, 0) == 1) {
        stalled = true;
        static_cast<void>(::send(control.get(), &byte, 1, 0) == 1);
      } else if ((ready[1].revents & POLLHUP) != 0) {
        ::_exit(0);
      }
      if ((ready[0].revents & POLLIN) != 0) answer(fuse, stalled);
      if ((ready[0].revents & POLLERR) != 0) ::_exit(0);
    }
  }

  [[noreturn]] static void hand_out(const std::filesystem::path& mount_point, const Fd& control,
                                    Fd fuse) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    fuse.reset();
    const Fd file(::open(mount_point.c_str(), O_RDONLY | O_CLOEXEC));
    const FdView view = file;
    const std::byte nothing{};
    if (file) static_cast<void>(wire::send_packet(control, {&nothing, 1}, {&view, 1}).has_value());
    ::_exit(0);
  }

  static void answer(FdView fuse, bool stalled) {
    alignas(8) std::byte request[FUSE_MIN_READ_BUFFER * 2];
    if (::read(fuse.get(), request, sizeof request) < std::ptrdiff_t{sizeof(fuse_in_header)}) {
      return;
    }
    fuse_in_header header{};
    std::memcpy(&header, request, sizeof header);
    if (stalled || header.opcode == FUSE_FORGET || header.opcode == FUSE_INTERRUPT) return;
    if (header.opcode == FUSE_INIT) {
      fuse_init_out out{};
      out.major = FUSE_KERNEL_VERSION;
      out.minor = FUSE_KERNEL_MINOR_VERSION;
      out.max_write = 4096;
      return reply(fuse, header.unique, std::as_bytes(std::span(&out, 1)));
    }
    if (header.opcode == FUSE_GETATTR) {
      fuse_attr_out out{};
      out.attr.ino = 1;
      out.attr.mode = S_IFREG | 0644;
      out.attr.nlink = 1;
      return reply(fuse, header.unique, std::as_bytes(std::span(&out, 1)));
    }
    if (header.opcode == FUSE_OPEN) {
      const fuse_open_out out{};
      return reply(fuse, header.unique, std::as_bytes(std::span(&out, 1)));
    }
    if (header.opcode == FUSE_STATFS) {
      const fuse_statfs_out out{};
      return reply(fuse, header.unique, std::as_bytes(std::span(&out, 1)));
    }
    reply(fuse, header.unique, {});
  }

  static void reply(FdView fuse, std::uint64_t unique, std::span<const std::byte> body) {
    std::byte bytes[256];
    fuse_out_header header{};
    header.unique = unique;
    header.len = static_cast<std::uint32_t>(sizeof header + body.size());
    std::memcpy(bytes, &header, sizeof header);
    if (!body.empty()) std::memcpy(bytes + sizeof header, body.data(), body.size());
    static_cast<void>(::write(fuse.get(), bytes, header.len) > 0);
  }

  Fd control_;
  pid_t server_ = -1;
  Fd file_;
};

}  // namespace wc::support
