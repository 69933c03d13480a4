// Memory of a device, as far as the daemon knows it: descriptors and handles that it passes on.
// An eventfd stands for a segment: what is written through one copy is read through another.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/publish_case_test.hpp"
#include "memory/types.hpp"

namespace wc::daemon {
namespace {

using support::attach;
using support::eventually;
using support::PublishedSample;
using support::RawClient;
using support::RawPublisher;
using support::Reply;
using ::testing::HasSubstr;

constexpr const char* kGpu = "GPU-00000000-0000-0000-0000-000000000001";

class DeviceMemoryTest : public PublishCase {
 protected:
  static PublishedSample gpu_sample() {
    PublishedSample sample;
    sample.device = kGpu;
    sample.content.segments = {2 * kMiB, 4 * kMiB};
    return sample;
  }

  // Granted and reserved; the manifest is written. Empty: something failed.
  static void prepare(RawClient& client, RawPublisher& publisher, memory::Transport transport) {
    auto begin = publisher.begin_message();
    begin.transport = static_cast<std::uint8_t>(transport);
    const auto granted = client.call<fb::GrantedT>(begin);
    ASSERT_TRUE(granted) << granted.error().message;
    publisher.granted(granted->load);
    fb::ReserveT reserve;
    reserve.load = granted->load;
    reserve.segments = gpu_sample().content.segments;
    reserve.manifest_bytes = publisher.manifest().bytes.size();
    std::vector<Fd> files;
    const auto reserved = client.call<fb::ReservedT>(reserve, &files);
    ASSERT_TRUE(reserved) << reserved.error().message;
    EXPECT_EQ(reserved->bytes, 6 * kMiB);
    ASSERT_EQ(files.size(), 1U);  // the manifest's alone
    const auto& bytes = publisher.manifest().bytes;
    ASSERT_EQ(::pwrite(files[0].get(), bytes.data(), bytes.size(), 0), std::ssize(bytes));
  }

  static fb::SupplyT supply_message(const RawPublisher& publisher, std::uint16_t index,
                                    std::uint64_t bytes) {
    fb::SupplyT supply;
    supply.load = publisher.load();
    supply.index = index;
    supply.segment = std::make_unique<fb::SegmentInfoT>();
    supply.segment->bytes = bytes;
    supply.segment->handle.Set(fb::DescriptorHandleT());
    return supply;
  }

  static Error supply(RawClient& client, const fb::SupplyT& message,
                      std::span<const FdView> descriptors) {
    const Reply reply = client.answer(client.send(message, descriptors));
    const auto done = reply.as<fb::DoneT>();
    return done ? Error{Code::ok, {}, {}} : done.error();
  }

  static fb::SupplyT ipc_message(const RawPublisher& publisher, std::uint16_t index,
                                 std::uint64_t bytes, std::size_t handle_bytes = 64) {
    fb::SupplyT message = supply_message(publisher, index, bytes);
    fb::IpcHandleT handle;
    handle.handle.assign(handle_bytes, static_cast<std::uint8_t>(index + 1));
    handle.offset_bytes = 512;
    handle.counter = "/counter";
    message.segment->handle.Set(std::move(handle));
    return message;
  }

  static fb::DeviceStatusT gpu(RawClient& client) {
    const auto status = client.call<fb::StatusReportT>(fb::StatusT());
    if (!status) return {};
    for (const auto& device : status->devices) {
      if (device->device == kGpu) return *device;
    }
    return {};
  }
};

TEST_F(DeviceMemoryTest, DescriptorsThatWereSuppliedReachTheReader) {
  RawClient loader = connect();
  RawPublisher publisher(loader, gpu_sample());
  ASSERT_NO_FATAL_FAILURE(prepare(loader, publisher, memory::Transport::vmm_fd));
  EXPECT_EQ(gpu(loader).loading_bytes, 6 * kMiB);
  std::vector<Fd> segments;
  for (std::uint16_t index = 0; index < 2; ++index) {
    segments.emplace_back(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    const FdView view = segments.back();
    const auto message = supply_message(publisher, index, index == 0 ? 2 * kMiB : 4 * kMiB);
    EXPECT_EQ(supply(loader, message, std::span(&view, 1)).message, "");
  }
  const auto published = publisher.publish();
  ASSERT_TRUE(published) << published.error().message;
  EXPECT_EQ(published->entry->device, kGpu);
  loader.disconnect();

  RawClient reader = connect();
  std::vector<Fd> files;
  const auto attached = attach(reader, "sample", &files);
  ASSERT_TRUE(attached) << attached.error().message;
  ASSERT_EQ(files.size(), 3U);
  for (std::size_t at = 0; at < 2; ++at) {
    const std::uint64_t wanted = 40 + at;
    ASSERT_EQ(::write(segments[at].get(), &wanted, sizeof wanted), 8);
    std::uint64_t value = 0;
    EXPECT_EQ(::read(files[at + 1].get(), &value, sizeof value), 8);
    EXPECT_EQ(value, wanted);
    EXPECT_NE(attached->segments[at]->handle.AsDescriptorHandle(), nullptr);
  }
  EXPECT_TRUE(evict(reader, "sample"));
  reader.disconnect();
  RawClient last = connect();
  EXPECT_TRUE(eventually([&] {
    const auto device = gpu(last);
    return device.bytes + device.loading_bytes + device.releasing_bytes == 0;
  }));
}

TEST_F(DeviceMemoryTest, ASupplyThatDoesNotFitIsRefusedAndItsDescriptorIsClosed) {
  RawClient loader = connect();
  RawPublisher publisher(loader, gpu_sample());
  ASSERT_NO_FATAL_FAILURE(prepare(loader, publisher, memory::Transport::vmm_fd));
  const std::size_t before = daemon().descriptors();
  const Fd event(::eventfd(0, EFD_CLOEXEC));
  const FdView view = event;
  const std::span<const FdView> one(&view, 1);
  const auto code = [&](const fb::SupplyT& message, std::span<const FdView> descriptors) {
    return supply(loader, message, descriptors).code;
  };
  EXPECT_EQ(code(supply_message(publisher, 2, kMiB), one), Code::invalid_argument);
  EXPECT_EQ(code(supply_message(publisher, 0, kMiB), one), Code::invalid_argument);
  EXPECT_EQ(code(supply_message(publisher, 0, 2 * kMiB), {}), Code::invalid_argument);
  EXPECT_EQ(code(ipc_message(publisher, 0, 2 * kMiB), {}), Code::invalid_argument);
  EXPECT_EQ(publisher.publish().error().code, Code::invalid_argument);
  EXPECT_EQ(code(supply_message(publisher, 0, 2 * kMiB), one), Code::ok);
  EXPECT_EQ(code(supply_message(publisher, 0, 2 * kMiB), one), Code::invalid_argument);
  EXPECT_TRUE(eventually([&] { return daemon().descriptors() == before + 1; }));
}

TEST_F(DeviceMemoryTest, WhoSuppliesNonsenseWithoutAnEndIsDropped) {
  RawClient loader = connect();
  RawPublisher publisher(loader, gpu_sample());
  ASSERT_NO_FATAL_FAILURE(prepare(loader, publisher, memory::Transport::vmm_fd));
  const Fd event(::eventfd(0, EFD_CLOEXEC));
  const FdView view = event;
  int refused = 0;
  while (loader.send(supply_message(publisher, 99, kMiB), std::span(&view, 1)) != 0) {
    if (loader.receive().kind != Reply::Kind::message) break;
    ++refused;
  }
  EXPECT_LE(refused, 20);
  RawClient other = connect();
  EXPECT_TRUE(other.call<fb::StatusReportT>(fb::StatusT()));
}

TEST_F(DeviceMemoryTest, DescriptorsWithAnythingButASupplyEndTheConnection) {
  RawClient loader = connect();
  RawPublisher publisher(loader, gpu_sample());
  ASSERT_NO_FATAL_FAILURE(prepare(loader, publisher, memory::Transport::vmm_fd));
  const Fd event(::eventfd(0, EFD_CLOEXEC));
  const FdView view = event;
  loader.send(fb::StatusT(), std::span(&view, 1));
  const Reply reply = loader.receive();
  EXPECT_EQ(reply.as<fb::DoneT>().error().code, Code::corrupt);
  EXPECT_EQ(loader.receive().kind, Reply::Kind::end);
}

TEST_F(DeviceMemoryTest, WhatWasSentAndNeverReadIsClosedWithTheConnection) {
  RawClient loader = connect();
  RawPublisher publisher(loader, gpu_sample());
  ASSERT_NO_FATAL_FAILURE(prepare(loader, publisher, memory::Transport::vmm_fd));
  // Garbage first: what comes behind it is not read any more.
  const std::vector<std::byte> garbage(16, std::byte{0xff});
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  const FdView view = write_end;
  loader.send_bytes(garbage);
  loader.send(supply_message(publisher, 0, 2 * kMiB), std::span(&view, 1));
  write_end.reset();
  char byte = 0;
  EXPECT_EQ(::read(read_end.get(), &byte, 1), 0);  // waits for the last copy to be closed
}

TEST_F(DeviceMemoryTest, IpcHandlesAreBytesAndGoWithTheirPublisher) {
  auto loader = std::make_unique<RawClient>(connect());
  RawPublisher publisher(*loader, gpu_sample());
  ASSERT_NO_FATAL_FAILURE(prepare(*loader, publisher, memory::Transport::torch_ipc));
  EXPECT_EQ(supply(*loader, ipc_message(publisher, 0, 2 * kMiB, 63), {}).code,
            Code::invalid_argument);
  EXPECT_EQ(supply(*loader, ipc_message(publisher, 0, 2 * kMiB), {}).code, Code::ok);
  EXPECT_EQ(supply(*loader, ipc_message(publisher, 1, 4 * kMiB, 66), {}).code, Code::ok);
  ASSERT_TRUE(publisher.publish());

  RawClient reader = connect();
  std::vector<Fd> files;
  const auto attached = attach(reader, "sample", &files);
  ASSERT_TRUE(attached) << attached.error().message;
  EXPECT_EQ(files.size(), 1U);
  ASSERT_EQ(attached->segments.size(), 2U);
  const auto* handle = attached->segments[1]->handle.AsIpcHandle();
  ASSERT_NE(handle, nullptr);
  EXPECT_EQ(handle->handle, std::vector<std::uint8_t>(66, 2));
  EXPECT_EQ(handle->offset_bytes, 512U);
  EXPECT_EQ(handle->counter, "/counter");

  loader->disconnect();
  EXPECT_TRUE(eventually([&] {
    const auto again = attach(reader, "sample");
    return !again && again.error().code == Code::not_found;
  }));
  EXPECT_THAT(log(), HasSubstr("its publisher's process"));
}

TEST_F(DeviceMemoryTest, ADeviceOrTransportThatCannotBeIsRefusedBeforeAnythingIsLoaded) {
  RawClient client = connect();
  const auto refusal = [&](const char* device, unsigned transport) {
    auto begin = RawPublisher(client, {}).begin_message();
    begin.device = device;
    begin.transport = static_cast<std::uint8_t>(transport);
    return client.call<fb::GrantedT>(begin).error().code;
  };
  EXPECT_EQ(refusal("cuda:0", 0), Code::invalid_argument);
  EXPECT_EQ(refusal("", 0), Code::invalid_argument);
  EXPECT_EQ(refusal("cpu", 2), Code::unsupported);
  EXPECT_EQ(refusal("cpu", 99), Code::unsupported);
  EXPECT_EQ(refusal(kGpu, 1), Code::unsupported);
}

}  // namespace
}  // namespace wc::daemon
