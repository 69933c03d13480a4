// Segments and views of one process: sizes, addresses, what comes back.
#include <gmock/gmock.h>

#include "base/units.hpp"
#include "tests/contract/contract_test.hpp"
#include "tests/contract/pattern.hpp"

namespace wc::contract {
namespace {

using memory::Access;

TEST_P(DeviceContract, DescribesItself) {
  const auto& info = device().info();
  EXPECT_FALSE(info.uuid.empty());
  EXPECT_FALSE(info.name.empty());
  EXPECT_FALSE(info.transports.empty());
  EXPECT_GE(info.granularity_bytes, memory::kTensorAlignment);
  EXPECT_EQ(info.granularity_bytes % memory::kTensorAlignment, 0U);
  EXPECT_GT(info.total_bytes, 0U);
  const auto free = device().free_bytes();
  ASSERT_TRUE(free) << free.error().message;
  EXPECT_LE(*free, info.total_bytes);
}

TEST_P(DeviceContract, SizesAreRoundedUpToTheGranularity) {
  const std::uint64_t grain = device().info().granularity_bytes;
  for (const std::uint64_t bytes : {std::uint64_t{1}, grain - 1, grain, grain + 1, 3 * grain}) {
    auto segment = device().create(bytes);
    ASSERT_TRUE(segment) << segment.error().message;
    EXPECT_EQ((*segment)->bytes(), (bytes + grain - 1) / grain * grain);
    auto view = device().map(**segment);
    ASSERT_TRUE(view) << view.error().message;
    EXPECT_EQ((*view)->bytes(), (*segment)->bytes());
    EXPECT_EQ((*view)->access(), Access::write);
    EXPECT_NE((*view)->address(), 0U);
    EXPECT_EQ((*view)->address() % memory::kTensorAlignment, 0U);
  }
}

TEST_P(DeviceContract, NothingIsNoSegment) {
  auto segment = device().create(0);
  ASSERT_FALSE(segment);
  EXPECT_EQ(segment.error().code, Code::invalid_argument);
}

TEST_P(DeviceContract, MoreThanThereIsIsExhaustedWithNumbers) {
  for (const std::uint64_t bytes : {2 * device().info().total_bytes, ~std::uint64_t{0}}) {
    auto segment = device().create(bytes);
    ASSERT_FALSE(segment);
    EXPECT_EQ(segment.error().code, Code::exhausted) << segment.error().message;
    EXPECT_THAT(segment.error().message, testing::ContainsRegex("[0-9] [KMGTPE]?i?B"));
  }
}

TEST_P(DeviceContract, BytesStayWhenTheirViewGoes) {
  const auto segment = filled(3 * kMiB + 17, 1);
  auto view = device().map(*segment);
  ASSERT_TRUE(view) << view.error().message;
  expect_pattern(**view, 3 * kMiB + 17, 1);
}

TEST_P(DeviceContract, BytesStayWhenTheirSegmentGoesBeforeTheView) {
  auto segment = filled(kMiB, 2);
  auto view = device().map(*segment);
  ASSERT_TRUE(view) << view.error().message;
  segment.reset();
  expect_pattern(**view, kMiB, 2);
}

TEST_P(DeviceContract, MadeReadOnlyAViewRefusesCopies) {
  const auto segment = filled(kMiB, 3);
  auto view = device().map(*segment);
  ASSERT_TRUE(view) << view.error().message;
  const std::uint64_t address = (*view)->address();
  const auto changed = (*view)->make_read_only();
  ASSERT_TRUE(changed) << changed.error().message;
  EXPECT_EQ((*view)->access(), Access::shared_read);
  EXPECT_EQ((*view)->address(), address);

  memory::View* const views[] = {view->get()};
  auto writer = device().writer(views, kBlock);
  ASSERT_TRUE(writer) << writer.error().message;
  const auto bytes = pattern(4096, 99);
  const memory::Run run = {.bytes = bytes.size()};
  const auto copied = (*writer)->copy_in(bytes, std::span(&run, 1));
  EXPECT_TRUE(!copied || !(*writer)->finish());
  expect_pattern(**view, kMiB, 3);
}

TEST_P(DeviceContract, MemoryComesBackWithItsLastHolder) {
  const std::uint64_t bytes = 4 * std::max(GetParam().noise_bytes, 16 * kMiB);
  const std::uint64_t before = free_bytes();
  auto segment = device().create(bytes);
  ASSERT_TRUE(segment) << segment.error().message;
  EXPECT_LE(free_bytes(), before - bytes / 2);
  auto view = device().map(**segment);
  ASSERT_TRUE(view) << view.error().message;
  ASSERT_TRUE((*view)->make_read_only());
  auto handle = (*segment)->export_handle();
  ASSERT_TRUE(handle) << handle.error().message;

  segment->reset();
  view->reset();
  EXPECT_LE(free_bytes(), before - bytes / 2) << "the handle still holds it";
  *handle = memory::Handle(Fd());
  EXPECT_TRUE(comes_back_to(before));
}

TEST_P(DeviceContract, AThousandSegmentsLeaveNothing) {
  const std::uint64_t bytes = device().info().granularity_bytes;
  (void)filled(bytes, 4);  // whatever a device makes once is made now
  const std::size_t descriptors = open_descriptors();
  const std::uint64_t before = free_bytes();
  for (int n = 0; n < 1000; ++n) {
    auto segment = device().create(bytes);
    ASSERT_TRUE(segment) << n << ": " << segment.error().message;
    auto view = device().map(**segment);
    ASSERT_TRUE(view) << n << ": " << view.error().message;
    ASSERT_TRUE((*view)->make_read_only());
    auto handle = (*segment)->export_handle();
    ASSERT_TRUE(handle) << n << ": " << handle.error().message;
  }
  EXPECT_EQ(open_descriptors(), descriptors);
  EXPECT_TRUE(comes_back_to(before));
}

}  // namespace
}  // namespace wc::contract
