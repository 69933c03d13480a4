#include "wire/packet.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/units.hpp"
#include "wire/control.hpp"

namespace wc::wire {
namespace {

// Beside the descriptors that are due: so that one too many is owned and counted here, and so that
// control messages that somebody switched on (SO_PASSCRED on an inherited socket) take no room
// away.
constexpr std::size_t kSpareControlBytes = 256;
constexpr std::size_t kControlBytes =
    CMSG_SPACE(kMaxDescriptors * sizeof(int)) + kSpareControlBytes;

// The kernel drops what it can't deliver and sets MSG_CTRUNC, without saying which of two reasons
// it had: more than there was room for, or no free number in the table of open files.
Result<> judge_descriptors(const msghdr& header, std::size_t count, std::size_t due) {
  const bool truncated = (header.msg_flags & MSG_CTRUNC) != 0;
  if (due == 0 && (truncated || count > 0))
    return fail(Code::corrupt, "descriptors came with a packet where none are due");
  if (count > due)
    return fail(Code::corrupt, "more descriptors came with a packet than the {} that are due", due);
  if (!truncated) return {};
  return fail_os(Code::exhausted, EMFILE,
                 "recvmsg kept {} of the descriptors of a packet (raise the limit of open files, "
                 "ulimit -n)",
                 count);
}

Failure receive_failure(int number) {
  if (number == ECONNRESET) return fail_os(Code::disconnected, number, "recvmsg");
  if (number == ENOMEM || number == ENOBUFS) return fail_os(Code::exhausted, number, "recvmsg");
  return fail_os(Code::io, number, "recvmsg");
}

// A peer that closed with unread data leaves ECONNRESET in front of what it had sent: that comes
// first here, and then the end, so that its last words are heard.
ssize_t receive_once(FdView socket, msghdr& header, int flags = 0) {
  const msghdr before = header;
  ssize_t length = -1;
  for (int resets = 0;;) {
    header = before;
    length = ::recvmsg(socket.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | flags);
    if (length >= 0) return length;
    if (errno != EINTR && (errno != ECONNRESET || ++resets > 1)) return length;
  }
}

Failure send_failure(int number, std::size_t bytes, std::size_t descriptors) {
  switch (number) {
    case EPIPE:
    case ECONNRESET:
    case ENOTCONN:
    case ECONNREFUSED:
      return fail_os(Code::disconnected, number, "sendmsg");
    case ENOMEM:
    case ENOBUFS:
      return fail_os(Code::exhausted, number, "sendmsg of {} bytes", format_count(bytes));
    case EBADF:
      return fail_os(Code::invalid_argument, number, "sendmsg with {} descriptors", descriptors);
    case EMSGSIZE:
      return fail_os(Code::io, number, "sendmsg of {} bytes (the socket's send buffer is smaller)",
                     format_count(bytes));
    default:
      return fail_os(Code::io, number, "sendmsg");
  }
}

}  // namespace

void own_descriptors(const msghdr& header, std::vector<Fd>& descriptors) {
  auto* mutable_header = const_cast<msghdr*>(&header);  // CMSG_NXTHDR asks for one, and reads it
  for (auto* control = CMSG_FIRSTHDR(&header); control != nullptr;
       control = CMSG_NXTHDR(mutable_header, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) continue;
    if (control->cmsg_len < CMSG_LEN(0)) return;
    const auto* at = reinterpret_cast<const std::byte*>(CMSG_DATA(control));
    const auto* end = static_cast<const std::byte*>(header.msg_control) + header.msg_controllen;
    const std::size_t told = control->cmsg_len - CMSG_LEN(0);
    const std::size_t length = std::min(told, static_cast<std::size_t>(end - at));
    for (std::size_t offset = 0; offset + sizeof(int) <= length; offset += sizeof(int)) {
      int number = -1;
      std::memcpy(&number, at + offset, sizeof number);
      if (number >= 0) descriptors.emplace_back(number);
    }
  }
}

Result<Receipt> receive_packet(FdView socket, std::span<std::byte> buffer,
                               std::size_t max_descriptors, Packet& packet) {
  packet = Packet{};
  if (max_descriptors > kMaxDescriptors || buffer.size() <= kMaxPacketBytes)
    return fail(Code::invalid_argument, "a packet with room for {} bytes and {} descriptors",
                format_count(buffer.size()), max_descriptors);
  alignas(cmsghdr) std::array<std::byte, kControlBytes> control;
  iovec vector{buffer.data(), buffer.size()};
  msghdr header{};
  header.msg_iov = &vector;
  header.msg_iovlen = 1;
  std::vector<Fd> descriptors;
  if (max_descriptors > 0) {
    descriptors.reserve(max_descriptors + kSpareControlBytes / sizeof(int));
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(max_descriptors * sizeof(int)) + kSpareControlBytes;
  }
  const ssize_t length = receive_once(socket, header);
  if (length < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK) return Receipt::would_block;
    return receive_failure(errno);
  }
  own_descriptors(header, descriptors);
  TRY(judge_descriptors(header, descriptors.size(), max_descriptors));
  const auto bytes = static_cast<std::size_t>(length);
  if (bytes > kMaxPacketBytes || (header.msg_flags & MSG_TRUNC) != 0)
    return fail(Code::corrupt, "a packet of more than {} bytes", format_count(kMaxPacketBytes));
  if (bytes == 0) return Receipt::end;
  packet.bytes = buffer.first(bytes);
  packet.descriptors = std::move(descriptors);
  return Receipt::packet;
}

// Without room for control messages the kernel passes copies of the descriptors over, and says so.
Result<Peeked> peek_packet(FdView socket, std::span<std::byte> buffer) {
  if (buffer.size() <= kMaxPacketBytes)
    return fail(Code::invalid_argument, "a packet with room for {} bytes",
                format_count(buffer.size()));
  iovec vector{buffer.data(), buffer.size()};
  msghdr header{};
  header.msg_iov = &vector;
  header.msg_iovlen = 1;
  Peeked peeked;
  const ssize_t length = receive_once(socket, header, MSG_PEEK);
  if (length < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK) return peeked;
    return receive_failure(errno);
  }
  const auto bytes = static_cast<std::size_t>(length);
  if (bytes > kMaxPacketBytes || (header.msg_flags & MSG_TRUNC) != 0)
    return fail(Code::corrupt, "a packet of more than {} bytes", format_count(kMaxPacketBytes));
  peeked.receipt = bytes == 0 ? Receipt::end : Receipt::packet;
  peeked.bytes = buffer.first(bytes);
  peeked.descriptors = (header.msg_flags & MSG_CTRUNC) != 0;
  return peeked;
}

Result<Sent> send_packet(FdView socket, std::span<const std::byte> bytes,
                         std::span<const FdView> descriptors) {
  if (bytes.empty() || bytes.size() > kMaxPacketBytes || descriptors.size() > kMaxDescriptors)
    return fail(Code::invalid_argument, "a packet of {} bytes with {} descriptors",
                format_count(bytes.size()), descriptors.size());
  alignas(cmsghdr) std::array<std::byte, kControlBytes> control{};
  iovec vector{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr header{};
  header.msg_iov = &vector;
  header.msg_iovlen = 1;
  if (!descriptors.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
    auto* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    auto* at = CMSG_DATA(rights);
    for (const FdView descriptor : descriptors) {
      const int number = descriptor.get();
      std::memcpy(at, &number, sizeof number);
      at += sizeof number;
    }
  }
  ssize_t length = -1;
  do {
    length = ::sendmsg(socket.get(), &header, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (length < 0 && errno == EINTR);
  if (length >= 0) return Sent::sent;
  if (errno == EAGAIN || errno == EWOULDBLOCK) return Sent::would_block;
  if (errno == ETOOMANYREFS) return Sent::descriptors_in_flight;
  return send_failure(errno, bytes.size(), descriptors.size());
}

bool all_read(FdView socket) {
  int waiting = 0;
  return ::ioctl(socket.get(), SIOCOUTQ, &waiting) == 0 && waiting == 0;
}

Result<Peer> peer_of(FdView socket) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0)
    return fail_errno("getsockopt(SO_PEERCRED)");
  return Peer{static_cast<std::uint32_t>(credentials.pid), credentials.uid, credentials.gid, {}};
}

// The kernel says how much room it needs; a set of groups does not change after the connect().
Result<std::vector<std::uint32_t>> groups_of(FdView socket) {
  std::vector<std::uint32_t> groups(32);
  for (int tries = 0; tries < 2; ++tries) {
    auto length = static_cast<socklen_t>(groups.size() * sizeof groups[0]);
    const int got = ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERGROUPS, groups.data(), &length);
    const bool short_of_room = got != 0 && errno == ERANGE;
    if (got != 0 && !short_of_room) break;
    groups.resize(length / sizeof groups[0]);
    if (got == 0) return groups;
  }
  return fail_errno("getsockopt(SO_PEERGROUPS)");
}

}  // namespace wc::wire
