// Two processes: what one makes the other reads, nobody writes, and nobody needs the other alive.
#include <array>

#include <fcntl.h>
#include <unistd.h>

#include "base/units.hpp"
#include "tests/contract/child.hpp"
#include "tests/contract/contract_test.hpp"
#include "tests/contract/pattern.hpp"

namespace wc::contract {
namespace {

using memory::Access;

memory::Handle exported(memory::Segment& segment) {
  auto handle = segment.export_handle();
  EXPECT_TRUE(handle) << handle.error().message;
  return handle ? std::move(*handle) : memory::Handle(Fd());
}

memory::Handle second_of(const memory::Handle& handle) {
  if (const auto* const ipc = std::get_if<memory::IpcHandle>(&handle)) return *ipc;
  return duplicate(std::get<Fd>(handle)).value();
}

// A child with this verb that has been sent the handle.
Child child_with(const DeviceFactory& factory, const memory::Handle& handle,
                 const std::string& verb, const std::vector<std::uint64_t>& numbers) {
  auto child = Child::start(factory.name, verb, numbers);
  EXPECT_TRUE(child) << child.error().message;
  const auto sent = send_handle(child->socket(), handle);
  EXPECT_TRUE(sent) << sent.error().message;
  return std::move(*child);
}

bool was_refused(int status) { return status == kFaulted || status < 0; }

TEST_P(DeviceContract, AnotherProcessReadsTheSameBytes) {
  const auto segment = filled(5 * kMiB + 3, 1);
  const auto handle = exported(*segment);
  const std::uint64_t bytes = segment->bytes();
  auto view = device().import(second_of(handle), {.bytes = bytes});
  ASSERT_TRUE(view) << view.error().message;
  const auto whole = copy_out(**view, 0, bytes);
  const auto wanted = pattern(5 * kMiB + 3, 1);
  EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), whole.begin()));

  const auto even = filled(4 * kMiB, 2);
  auto child = child_with(GetParam(), exported(*even), "check", {4 * kMiB, 2, 0});
  EXPECT_EQ(child.wait(), kDone);
}

TEST_P(DeviceContract, SeveralProcessesReadTogether) {
  const auto segment = filled(4 * kMiB, 3);
  const auto handle = exported(*segment);
  std::vector<Child> children;
  for (int n = 0; n < 4; ++n) {
    children.push_back(child_with(GetParam(), handle, "check", {4 * kMiB, 3, 0}));
  }
  for (auto& child : children) EXPECT_EQ(child.wait(), kDone);
}

TEST_P(DeviceContract, AReaderThatStoresIsStoppedAndNothingChanges) {
  const auto segment = filled(2 * kMiB, 4);
  const auto handle = exported(*segment);
  auto child = child_with(GetParam(), handle, "store", {2 * kMiB});
  EXPECT_TRUE(was_refused(child.wait()));
  auto view = device().import(second_of(handle), {.bytes = 2 * kMiB});
  ASSERT_TRUE(view) << view.error().message;
  expect_pattern(**view, 2 * kMiB, 4);
}

TEST_P(DeviceContract, AViewMadeReadOnlyStopsStores) {
  auto child = Child::start(GetParam().name, "store_own", {2 * kMiB});
  ASSERT_TRUE(child) << child.error().message;
  EXPECT_TRUE(was_refused(child->wait()));
}

TEST_P(DeviceContract, APrivateCopyDisturbsNobody) {
  const auto segment = filled(2 * kMiB, 5);
  const auto handle = exported(*segment);
  if (!GetParam().private_copies) {
    auto refused =
        device().import(second_of(handle), {.bytes = 2 * kMiB, .access = Access::private_copy});
    ASSERT_FALSE(refused);
    EXPECT_TRUE(refused.error().code == Code::unsupported ||
                refused.error().code == Code::invalid_argument);
    return;
  }
  auto child = child_with(GetParam(), handle, "store_private", {2 * kMiB, 5});
  EXPECT_EQ(child.wait(), kDone);
  auto view = device().import(second_of(handle), {.bytes = 2 * kMiB});
  ASSERT_TRUE(view) << view.error().message;
  expect_pattern(**view, 2 * kMiB, 5);
}

TEST_P(DeviceContract, BytesOutliveTheProcessThatMadeThem) {
  auto maker = Child::start(GetParam().name, "make", {4 * kMiB, 6});
  ASSERT_TRUE(maker) << maker.error().message;
  auto handle = receive_handle(maker->socket());
  ASSERT_TRUE(handle) << handle.error().message;
  auto before = device().import(second_of(*handle), {.bytes = 4 * kMiB});
  ASSERT_TRUE(before) << before.error().message;
  maker->kill();
  EXPECT_LT(maker->wait(), 0);

  expect_pattern(**before, 4 * kMiB, 6);
  before->reset();
  auto after = device().import(second_of(*handle), {.bytes = 4 * kMiB});
  ASSERT_TRUE(after) << after.error().message;
  expect_pattern(**after, 4 * kMiB, 6);
  auto child = child_with(GetParam(), *handle, "check", {4 * kMiB, 6, 0});
  EXPECT_EQ(child.wait(), kDone);
}

TEST_P(DeviceContract, MemoryOfADeadMakerComesBackWithTheLastHandle) {
  const std::uint64_t bytes = 4 * std::max(GetParam().noise_bytes, 16 * kMiB);
  const std::uint64_t before = free_bytes();
  auto maker = Child::start(GetParam().name, "make", {bytes, 7});
  ASSERT_TRUE(maker) << maker.error().message;
  auto handle = receive_handle(maker->socket());
  ASSERT_TRUE(handle) << handle.error().message;
  maker->kill();
  (void)maker->wait();
  EXPECT_LE(free_bytes(), before - bytes / 2);
  *handle = memory::Handle(Fd());
  EXPECT_TRUE(comes_back_to(before));
}

TEST_P(DeviceContract, AWantedAddressIsHadOrBusy) {
  const auto segment = filled(4 * kMiB, 8);
  const auto handle = exported(*segment);
  const std::uint64_t address = GetParam().free_address;
  auto child = child_with(GetParam(), handle, "check", {4 * kMiB, 8, address});
  EXPECT_EQ(child.wait(), kDone);

  auto view = device().import(second_of(handle), {.bytes = 4 * kMiB, .address = address});
  ASSERT_TRUE(view) << view.error().message;
  EXPECT_EQ((*view)->address(), address);
  auto taken = device().import(second_of(handle), {.bytes = 4 * kMiB, .address = address});
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, Code::busy) << taken.error().message;
  expect_pattern(**view, 4 * kMiB, 8);
  view->reset();
  EXPECT_TRUE(device().import(second_of(handle), {.bytes = 4 * kMiB, .address = address}));
}

TEST_P(DeviceContract, ExportingTwiceGivesTwoHandles) {
  const auto segment = filled(2 * kMiB, 9);
  auto first = exported(*segment);
  const auto second = exported(*segment);
  first = memory::Handle(Fd());
  auto view = device().import(second_of(second), {.bytes = 2 * kMiB});
  ASSERT_TRUE(view) << view.error().message;
  expect_pattern(**view, 2 * kMiB, 9);
}

TEST_P(DeviceContract, HandlesOfOtherTransportsAreRefused) {
  const auto segment = filled(kMiB, 10);
  const bool by_descriptor = std::holds_alternative<Fd>(exported(*segment));
  memory::Handle other = Fd();
  if (by_descriptor) other = memory::IpcHandle{.handle = std::vector<std::byte>(64)};
  auto view = device().import(std::move(other), {.bytes = kMiB});
  ASSERT_FALSE(view);
  EXPECT_EQ(view.error().code, Code::invalid_argument) << view.error().message;
}

TEST_P(DeviceContract, DescriptorsThatAreNoSegmentsAreRefused) {
  std::array<int, 2> ends = {};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const Fd write_end(ends[1]);
  auto pipe = device().import(memory::Handle(Fd(ends[0])), {.bytes = kMiB});
  ASSERT_FALSE(pipe);
  EXPECT_NE(pipe.error().code, Code::internal) << pipe.error().message;
  Fd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(file);
  EXPECT_FALSE(device().import(memory::Handle(std::move(file)), {.bytes = kMiB}));
}

TEST_P(DeviceContract, AThousandImportsLeaveNothing) {
  const auto segment = filled(2 * kMiB, 11);
  const auto handle = exported(*segment);
  const std::size_t descriptors = open_descriptors();
  const std::uint64_t before = free_bytes();
  for (int n = 0; n < 1000; ++n) {
    auto view = device().import(second_of(handle), {.bytes = 2 * kMiB});
    ASSERT_TRUE(view) << n << ": " << view.error().message;
  }
  EXPECT_EQ(open_descriptors(), descriptors);
  EXPECT_TRUE(comes_back_to(before));
}

}  // namespace
}  // namespace wc::contract
