// How many attaches and detaches a second one daemon serves, and how little memory it takes.
//
//   daemon_bench [SECONDS [ENTRIES [TENSORS]]]
//
// Readers are threads, each with a connection of its own, that attach and detach without a pause;
// the descriptors are received and closed, nothing is mapped. The floor is what the packets alone
// cost: the same four, two descriptors with one of them, through a socket pair in one thread.
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include <sys/socket.h>

#include "base/units.hpp"
#include "tests/support/daemon_fixture.hpp"
#include "tests/support/raw_publisher.hpp"

namespace {

using namespace std::chrono_literals;
using namespace wc;
using support::RawClient;
namespace fb = wire::fb;

using Clock = std::chrono::steady_clock;

void say(const std::string& line) { std::cout << line << std::endl; }

// Four packets, as an attach and a detach are.
double floor_pairs_per_s(std::chrono::nanoseconds time) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) return 0;
  const Fd left(ends[0]);
  const Fd right(ends[1]);
  const std::vector<std::byte> bytes(500);
  const std::array<FdView, 2> descriptors = {FdView(0), FdView(1)};
  const auto buffer = std::make_unique<wire::PacketBuffer>();
  const auto pass = [&](FdView from, FdView to, std::span<const FdView> with) {
    wire::Packet packet;
    return wire::send_packet(from, bytes, with).has_value() &&
           wire::receive_packet(to, buffer->bytes, with.size(), packet).has_value();
  };
  std::uint64_t pairs = 0;
  const auto begin = Clock::now();
  for (; Clock::now() - begin < time; ++pairs) {
    if (!pass(left, right, {}) || !pass(right, left, descriptors) || !pass(left, right, {}) ||
        !pass(right, left, {})) {
      return 0;
    }
  }
  return static_cast<double>(pairs) / std::chrono::duration<double>(Clock::now() - begin).count();
}

double pairs_per_s(const std::filesystem::path& socket, unsigned readers,
                   std::chrono::nanoseconds time) {
  std::atomic<std::uint64_t> pairs = 0;
  std::atomic<bool> failed = false;
  const auto until = Clock::now() + time;
  {
    std::vector<std::jthread> threads;
    for (unsigned count = 0; count < readers; ++count) {
      threads.emplace_back([&] {
        RawClient client(socket);
        if (!client.hello()) failed = true;
        while (!failed && Clock::now() < until) {
          std::vector<Fd> files;
          const auto attached = support::attach(client, "sample-0", &files);
          if (!attached || !support::detach(client, attached->lease)) failed = true;
          ++pairs;
        }
      });
    }
  }
  if (failed) say("a reader failed");
  return static_cast<double>(pairs) / std::chrono::duration<double>(time).count();
}

bool publish(RawClient& client, unsigned index, std::uint32_t tensors) {
  support::PublishedSample sample;
  sample.name = format("sample-{}", index);
  sample.content.source = sample.name;
  sample.content.segments = {std::uint64_t{512} * tensors};
  sample.content.tensors_per_segment = tensors;
  const auto published = support::RawPublisher(client, sample).run();
  if (!published) say(published.error().message);
  return published.has_value();
}

std::uint64_t own_memory(RawClient& client) {
  const auto status = client.call<fb::StatusReportT>(fb::StatusT());
  return status ? status->rss_bytes : 0;
}

unsigned argument(std::span<char* const> arguments, std::size_t index, unsigned otherwise) {
  if (index >= arguments.size()) return otherwise;
  const std::string_view text = arguments[index];
  std::from_chars(text.data(), text.data() + text.size(), otherwise);
  return otherwise;
}

int measure(std::span<char* const> arguments) {
  const std::chrono::seconds time(argument(arguments, 1, 3));
  const unsigned entries = argument(arguments, 2, 100);
  const unsigned tensors = argument(arguments, 3, 36'000);
  const support::TempFolder folder;
  support::DaemonOptions options;
  options.socket = folder.path() / "run" / "socket";
  options.log = folder.path() / "log";
  const support::DaemonProcess daemon(options);
  RawClient client(options.socket);
  if (!daemon.ready() || !client.hello()) return 1;
  say(format("own memory of an empty daemon: {}", format_bytes(own_memory(client))));
  for (unsigned index = 0; index < entries; ++index) {
    if (!publish(client, index, tensors)) return 1;
  }
  say(format("own memory with {} entries of {} tensors: {}", format_count(entries),
             format_count(tensors), format_bytes(own_memory(client))));
  say(format("floor, the packets alone: {:.0f} attach+detach a second", floor_pairs_per_s(1s)));
  for (const unsigned readers : {1U, 8U, 64U}) {
    say(format("{} readers: {:.0f} attach+detach a second", readers,
               pairs_per_s(options.socket, readers, time)));
  }
  say(format("own memory after it: {}", format_bytes(own_memory(client))));
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  return measure(std::span(arguments, static_cast<std::size_t>(count)));
}
