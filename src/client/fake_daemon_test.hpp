// A daemon that does what a test says: a listening socket in a folder of its own, and for each
// connection a thread that runs the test's script.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "client/address.hpp"
#include "client/connection.hpp"
#include "tests/support/temp_folder.hpp"
#include "wire/codec.hpp"
#include "wire/packet.hpp"

namespace wc::client {

inline void expect_error(const auto& result, Code code, const std::string& text) {
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(name_of(result.error().code), name_of(code)) << result.error().message;
  EXPECT_THAT(result.error().message, testing::HasSubstr(text));
}

inline constexpr const char* kEpoch = "00112233445566778899aabbccddeeff";

// The daemon's end of one connection. Blocking, with a limit: a test never hangs on it.
class FakePeer {
 public:
  explicit FakePeer(Fd socket) : socket_(std::move(socket)) {}

  /// Nothing at the end of the connection.
  std::unique_ptr<wire::fb::MessageT> receive(std::size_t max_descriptors = 0) {
    for (;;) {
      wire::Packet packet;
      const auto receipt = wire::receive_packet(socket_, buffer_->bytes, max_descriptors, packet);
      if (!receipt || *receipt == wire::Receipt::end) return nullptr;
      if (*receipt == wire::Receipt::packet) {
        descriptors = std::move(packet.descriptors);
        const auto message = wire::decode(packet.bytes);
        EXPECT_TRUE(message) << message.error().message;
        return message ? std::unique_ptr<wire::fb::MessageT>((*message)->UnPack()) : nullptr;
      }
      pollfd ready = {socket_.get(), POLLIN, 0};
      if (::poll(&ready, 1, 20'000) <= 0) {
        ADD_FAILURE() << "the client sent nothing for 20 s";
        return nullptr;
      }
    }
  }

  /// The next message, which must be of this type.
  template <typename BodyT>
  BodyT expect(std::uint64_t& request, std::size_t max_descriptors = 0) {
    const auto message = receive(max_descriptors);
    const auto* body = message == nullptr ? nullptr : as<BodyT>(*message);
    EXPECT_NE(body, nullptr) << (message == nullptr ? "the end" : name_of(message->body.type));
    if (body == nullptr) return BodyT();
    request = message->request;
    return *body;
  }

  template <typename BodyT>
  static const BodyT* as(const wire::fb::MessageT& message) {
    constexpr auto kType = wire::fb::BodyTraits<typename BodyT::TableType>::enum_value;
    return message.body.type == kType ? static_cast<const BodyT*>(message.body.value) : nullptr;
  }

  template <typename BodyT>
  void send(std::uint64_t request, const BodyT& body, std::vector<FdView> fds = {}) {
    const auto bytes = wire::encode(request, body);
    ASSERT_TRUE(bytes) << bytes.error().message;
    send_raw(*bytes, std::move(fds));
  }
  void fail(std::uint64_t request, Code code, const std::string& text) {
    send(request, wire::to_failure({code, text, {}}));
  }
  void send_raw(const wire::Bytes& bytes, std::vector<FdView> fds = {}) {
    const auto sent = wire::send_packet(socket_, bytes, fds);  // a client may have gone by now
    EXPECT_TRUE(sent || sent.error().code == Code::disconnected) << sent.error().message;
  }

  /// Hello and Welcome.
  wire::fb::HelloT greet() {
    std::uint64_t request = 0;
    const auto hello = expect<wire::fb::HelloT>(request);
    wire::fb::WelcomeT welcome;
    welcome.version = 1;
    welcome.epoch = kEpoch;
    welcome.pid = 4242;
    welcome.software = "fake 0";
    send(request, welcome);
    return hello;
  }

  /// Whether nothing more has come by now.
  [[nodiscard]] bool idle() const {
    pollfd ready = {socket_.get(), POLLIN, 0};
    return ::poll(&ready, 1, 0) == 0;
  }
  FdView socket() const { return socket_; }
  void close() { socket_.reset(); }

  std::vector<Fd> descriptors;  // of the packet that was received last

 private:
  static std::string_view name_of(wire::fb::Body type) { return wire::name_of(type); }
  Fd socket_;
  std::unique_ptr<wire::PacketBuffer> buffer_ = std::make_unique<wire::PacketBuffer>();
};

class FakeDaemon {
 public:
  using Script = std::function<void(FakePeer&)>;

  explicit FakeDaemon(Script script) : script_(std::move(script)) {
    auto place = SocketPlace::open(socket_path(), ::geteuid(), {});
    EXPECT_TRUE(place) << place.error().message;
    listener_ = Fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    const auto& address = place->address();
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
              0);
    EXPECT_EQ(::listen(listener_.get(), 16), 0);
    accepting_ = std::thread([this] { accept_all(); });
  }
  FakeDaemon(const FakeDaemon&) = delete;
  FakeDaemon& operator=(const FakeDaemon&) = delete;
  ~FakeDaemon() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    accepting_.join();
    for (auto& thread : serving_) thread.join();
  }

  [[nodiscard]] std::string socket_path() const { return folder_ / "socket"; }
  [[nodiscard]] ConnectOptions options() const {
    ConnectOptions options;
    options.socket = socket_path();
    return options;
  }
  [[nodiscard]] std::shared_ptr<Connection> connect() const {
    auto connection = Connection::connect(options());
    EXPECT_TRUE(connection) << connection.error().message;
    return connection ? *connection : nullptr;
  }

 private:
  void accept_all() {
    for (;;) {
      Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!socket) return;
      serving_.emplace_back([this, peer = std::make_shared<FakePeer>(std::move(socket))] {
        script_(*peer);
        peer->close();
      });
    }
  }

  support::TempFolder folder_;
  Script script_;
  Fd listener_;
  std::vector<std::thread> serving_;  // of the accepting thread, until it has ended
  std::thread accepting_;
};

}  // namespace wc::client
