// A client with nothing between the test and the wire: packets in, packets out, descriptors seen.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.hpp"
#include "base/result.hpp"
#include "wire/codec.hpp"
#include "wire/packet.hpp"

namespace wc::support {

namespace fb = wire::fb;

/// A message that came, verified, with its bytes and descriptors.
struct Reply {
  enum class Kind : std::uint8_t { message, end, silence };
  Kind kind = Kind::silence;
  std::uint64_t request = 0;
  fb::Body type = fb::Body::NONE;
  std::vector<std::byte> bytes;
  std::vector<Fd> descriptors;

  template <typename BodyT>
  [[nodiscard]] Result<BodyT> as() const {
    const fb::Message* message = TRY(wire::decode(bytes));
    return wire::body_as<BodyT>(*message);
  }
};

class RawClient {
 public:
  static constexpr std::chrono::milliseconds kPatience{10'000};

  explicit RawClient(const std::filesystem::path& socket) {
    socket_ = Fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    // The folder by descriptor: a test's path may be longer than an address.
    const Fd folder(::open(socket.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    const std::string name =
        format("/proc/self/fd/{}/{}", folder.get(), socket.filename().native());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name.copy(static_cast<char*>(address.sun_path), sizeof(address.sun_path) - 1);
    connected_ =
        ::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }

  [[nodiscard]] bool connected() const { return connected_; }
  [[nodiscard]] FdView socket() const { return socket_; }
  void disconnect() { socket_.reset(); }

  /// The request's number; 0: it could not be sent.
  template <typename BodyT>
  std::uint64_t send(const BodyT& body, std::span<const FdView> descriptors = {}) {
    const std::uint64_t request = next_request_++;
    const auto bytes = wire::encode(request, body);
    if (!bytes) ADD_FAILURE() << bytes.error().message;
    return bytes && send_bytes(*bytes, descriptors) ? request : 0;
  }

  bool send_bytes(std::span<const std::byte> bytes, std::span<const FdView> descriptors = {}) {
    const auto sent = wire::send_packet(socket_, bytes, descriptors);
    return sent && *sent == wire::Sent::sent;
  }

  /// The next message, whatever it is.
  Reply receive(std::chrono::milliseconds patience = kPatience) {
    Reply reply;
    pollfd ready{socket_.get(), POLLIN, 0};
    if (::poll(&ready, 1, static_cast<int>(patience.count())) != 1) return reply;
    wire::Packet packet;
    const auto receipt =
        wire::receive_packet(socket_, buffer_->bytes, wire::kMaxDescriptors, packet);
    if (!receipt || *receipt == wire::Receipt::end) {
      reply.kind = Reply::Kind::end;
      return reply;
    }
    if (*receipt == wire::Receipt::would_block) return reply;
    const auto message = wire::decode(packet.bytes);
    if (!message) {
      ADD_FAILURE() << message.error().message;
      return reply;
    }
    reply.kind = Reply::Kind::message;
    reply.request = (*message)->request();
    reply.type = (*message)->body_type();
    reply.bytes.assign(packet.bytes.begin(), packet.bytes.end());
    reply.descriptors = std::move(packet.descriptors);
    return reply;
  }

  /// The answer to a request; events and answers to others that come before it are passed over.
  Reply answer(std::uint64_t request, std::chrono::milliseconds patience = kPatience) {
    const auto until = std::chrono::steady_clock::now() + patience;
    for (;;) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          until - std::chrono::steady_clock::now());
      Reply reply = receive(std::max(left, std::chrono::milliseconds(0)));
      if (reply.kind != Reply::Kind::message) return reply;
      if (reply.request == request && reply.type != fb::Body::Progress) return reply;
    }
  }

  /// Sends and waits for the answer as AnswerT. Errors: the daemon's Failure; disconnected.
  template <typename AnswerT, typename BodyT>
  Result<AnswerT> call(const BodyT& body, std::vector<Fd>* descriptors = nullptr) {
    const std::uint64_t request = send(body);
    if (request == 0) return fail(Code::disconnected, "it could not be sent");
    Reply reply = answer(request);
    if (reply.kind == Reply::Kind::end) return fail(Code::disconnected, "the connection ended");
    if (reply.kind == Reply::Kind::silence) return fail(Code::timed_out, "no answer came");
    if (descriptors != nullptr) *descriptors = std::move(reply.descriptors);
    return reply.as<AnswerT>();
  }

  Result<fb::WelcomeT> hello(const std::string& label = "raw") {
    fb::HelloT hello;
    hello.min_version = wire::kMinVersion;
    hello.max_version = wire::kMaxVersion;
    hello.label = label;
    hello.command = "raw client of a test";
    hello.pid = ::getpid();
    return call<fb::WelcomeT>(hello);
  }

 private:
  Fd socket_;
  bool connected_ = false;
  std::uint64_t next_request_ = 1;
  std::unique_ptr<wire::PacketBuffer> buffer_ = std::make_unique<wire::PacketBuffer>();
};

}  // namespace wc::support
