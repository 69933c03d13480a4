#include "memory/host/host_device.hpp"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/units.hpp"
#include "memory/host/reserve.hpp"
#include "memory/host/seal.hpp"

namespace wc::memory {
namespace {

using testing::HasSubstr;

std::unique_ptr<Device> open_device() {
  auto device = open_host_device();
  EXPECT_TRUE(device) << device.error().message;
  return std::move(*device);
}

std::byte* at(const View& view) {
  return reinterpret_cast<std::byte*>(view.address());  // NOLINT(performance-no-int-to-ptr)
}

// A sealed segment of zeros but for its first byte.
Handle sealed_segment(Device& device, std::uint64_t bytes) {
  auto segment = device.create(bytes);
  EXPECT_TRUE(segment) << segment.error().message;
  auto view = device.map(**segment);
  EXPECT_TRUE(view);
  *at(**view) = std::byte{7};
  view->reset();
  auto handle = (*segment)->export_handle();
  EXPECT_TRUE(handle) << handle.error().message;
  return std::move(*handle);
}

TEST(HostDeviceTest, DescribesTheProcessor) {
  const auto device = open_device();
  EXPECT_EQ(device->info().uuid, "cpu");
  EXPECT_EQ(device->info().ordinal, -1);
  EXPECT_FALSE(device->info().name.empty());
  EXPECT_THAT(device->info().transports, testing::ElementsAre(Transport::host_fd));
}

TEST(HostDeviceTest, LargeViewsAreAlignedToHugePages) {
  const auto device = open_device();
  for (const auto access : {Access::shared_read, Access::private_copy}) {
    auto view =
        device->import(sealed_segment(*device, 2 * kMiB), {.bytes = 2 * kMiB, .access = access});
    ASSERT_TRUE(view) << view.error().message;
    EXPECT_EQ((*view)->address() % (2 * kMiB), 0U);
    EXPECT_EQ((*view)->access(), access);
  }
}

TEST(HostDeviceTest, ExportWaitsForTheLastWriter) {
  const auto device = open_device();
  auto segment = device->create(4096);
  ASSERT_TRUE(segment);
  auto view = device->map(**segment);
  ASSERT_TRUE(view);
  auto refused = (*segment)->export_handle();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::busy);
  ASSERT_TRUE((*view)->make_read_only());
  EXPECT_TRUE((*segment)->export_handle()) << "a read-only view is no writer";
  EXPECT_FALSE(device->map(**segment)) << "what is sealed can't be written";
}

TEST(HostDeviceTest, LentMemoryIsFilledAndThenSealed) {
  const auto device = open_device();
  auto lent = reserve_host(8192);
  ASSERT_TRUE(lent);
  auto copy = duplicate(*lent);
  ASSERT_TRUE(copy);
  auto view = device->import(Handle(std::move(*copy)), {.bytes = 8192, .access = Access::write});
  ASSERT_TRUE(view) << view.error().message;
  at(**view)[8191] = std::byte{9};
  view->reset();
  auto sealed = seal_and_reopen(*lent);
  ASSERT_TRUE(sealed) << sealed.error().message;
  auto reader = device->import(Handle(std::move(*sealed)), {.bytes = 8192});
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ(at(**reader)[8191], std::byte{9});
}

TEST(HostDeviceTest, UnsealedMemoryIsNotRead) {
  const auto device = open_device();
  for (const auto access : {Access::shared_read, Access::private_copy}) {
    auto lent = reserve_host(4096);
    ASSERT_TRUE(lent);
    auto view = device->import(Handle(std::move(*lent)), {.bytes = 4096, .access = access});
    ASSERT_FALSE(view);
    EXPECT_EQ(view.error().code, Code::corrupt);
  }
}

TEST(HostDeviceTest, SealedMemoryIsNotWritten) {
  const auto device = open_device();
  auto view =
      device->import(sealed_segment(*device, 4096), {.bytes = 4096, .access = Access::write});
  ASSERT_FALSE(view);
  EXPECT_EQ(view.error().code, Code::corrupt);
}

TEST(HostDeviceTest, SizeOfASegmentIsChecked) {
  const auto device = open_device();
  auto view = device->import(sealed_segment(*device, 4096), {.bytes = 8192});
  ASSERT_FALSE(view);
  EXPECT_EQ(view.error().code, Code::corrupt);
  EXPECT_EQ(device->import(sealed_segment(*device, 4096), {.bytes = 0}).error().code,
            Code::invalid_argument);
}

TEST(HostDeviceTest, PrivateCopyKeepsItsWritesToItself) {
  const auto device = open_device();
  const Handle handle = sealed_segment(*device, 4096);
  const auto import = [&](Access access) {
    return device->import(Handle(duplicate(std::get<Fd>(handle)).value()),
                          {.bytes = 4096, .access = access});
  };
  auto shared = import(Access::shared_read);
  auto mine = import(Access::private_copy);
  auto yours = import(Access::private_copy);
  ASSERT_TRUE(shared && mine && yours);
  *at(**mine) = std::byte{42};
  EXPECT_EQ(*at(**mine), std::byte{42});
  EXPECT_EQ(*at(**shared), std::byte{7});
  EXPECT_EQ(*at(**yours), std::byte{7});
}

TEST(HostDeviceTest, PrivateCopiesMayBeLargerThanTheMachine) {
  const auto device = open_device();
  const std::uint64_t bytes = 64 * kMiB;
  const Handle handle = sealed_segment(*device, bytes);
  std::vector<std::unique_ptr<View>> views;
  const std::uint64_t wanted = 4 * device->info().total_bytes / bytes;
  for (std::uint64_t n = 0; n < wanted; ++n) {
    auto view = device->import(Handle(duplicate(std::get<Fd>(handle)).value()),
                               {.bytes = bytes, .access = Access::private_copy});
    ASSERT_TRUE(view) << n << ": " << view.error().message;
    views.push_back(std::move(*view));
  }
}

TEST(HostDeviceTest, StrictMakesEveryReaderReadOnly) {
  ASSERT_EQ(::setenv("WEIGHTCACHE_STRICT", "1", 1), 0);
  const auto strict = open_device();
  ASSERT_EQ(::unsetenv("WEIGHTCACHE_STRICT"), 0);
  auto view = strict->import(sealed_segment(*strict, 4096),
                             {.bytes = 4096, .access = Access::private_copy});
  ASSERT_TRUE(view);
  EXPECT_EQ((*view)->access(), Access::shared_read);
  EXPECT_DEATH(*at(**view) = std::byte{1}, "");
}

TEST(HostDeviceTest, ForeignObjectsAreRefused) {
  class OtherSegment final : public Segment {
   public:
    std::uint64_t bytes() const override { return 4096; }
    Result<Handle> export_handle() override { return fail(Code::device, "never"); }
  };
  class OtherView final : public View {
   public:
    std::uint64_t address() const override { return 4096; }
    std::uint64_t bytes() const override { return 4096; }
    Access access() const override { return Access::write; }
    Result<> make_read_only() override { return {}; }
  };
  const auto device = open_device();
  OtherSegment segment;
  EXPECT_EQ(device->map(segment).error().code, Code::invalid_argument);
  OtherView view;
  View* const views[] = {&view};
  EXPECT_EQ(device->writer(views, kMiB).error().code, Code::invalid_argument);
}

}  // namespace
}  // namespace wc::memory
