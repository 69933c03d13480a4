// Writers: staged or in place, several runs, several segments, several threads.
#include <algorithm>
#include <array>
#include <thread>

#include "base/units.hpp"
#include "tests/contract/contract_test.hpp"
#include "tests/contract/pattern.hpp"

namespace wc::contract {
namespace {

TEST_P(DeviceContract, MemoryIsEitherStagedOrInPlace) {
  const auto segment = filled(2 * kMiB, 1);
  auto view = device().map(*segment);
  ASSERT_TRUE(view) << view.error().message;
  memory::View* const views[] = {view->get()};
  auto writer = device().writer(views, kBlock);
  ASSERT_TRUE(writer) << writer.error().message;
  const auto place = (*writer)->place(0, 4096, kMiB);
  const auto staged = (*writer)->stage(kBlock);
  ASSERT_TRUE(staged) << staged.error().message;
  EXPECT_NE(place.empty(), staged->empty());
  if (staged->empty()) {
    EXPECT_EQ(place.size(), kMiB);
    EXPECT_TRUE((*writer)->place(0, 2 * kMiB - 1, 2).empty()) << "past the end";
    EXPECT_TRUE((*writer)->place(0, ~std::uint64_t{0}, 2).empty()) << "past the end";
    EXPECT_TRUE((*writer)->place(1, 0, 1).empty()) << "no such segment";
  } else {
    EXPECT_GE(staged->size(), kBlock);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(staged->data()) % 4096, 0U);
  }
}

TEST_P(DeviceContract, RunsOfABlockGoToTheirPlaces) {
  const auto first = filled(2 * kMiB, 1);
  const auto second = filled(2 * kMiB, 2);
  auto first_view = device().map(*first);
  auto second_view = device().map(*second);
  ASSERT_TRUE(first_view && second_view);
  memory::View* const views[] = {first_view->get(), second_view->get()};
  auto writer = device().writer(views, kBlock);
  ASSERT_TRUE(writer) << writer.error().message;
  const auto block = pattern(kBlock, 77);
  const std::array<memory::Run, 5> runs = {{
      {.block_offset = 0, .segment_offset = 4096, .bytes = 1, .segment = 0},
      {.block_offset = 1, .segment_offset = 512, .bytes = 3000, .segment = 1},
      {.block_offset = 5000, .segment_offset = kMiB, .bytes = 0, .segment = 0},
      {.block_offset = 4097, .segment_offset = 8192, .bytes = 100'000, .segment = 0},
      {.block_offset = kBlock - 7, .segment_offset = 2 * kMiB - 7, .bytes = 7, .segment = 1},
  }};
  ASSERT_TRUE((*writer)->copy_in(block, runs));
  ASSERT_TRUE((*writer)->finish());

  std::array<std::vector<std::byte>, 2> wanted = {pattern(2 * kMiB, 1), pattern(2 * kMiB, 2)};
  for (const auto& run : runs) {
    std::copy_n(block.begin() + static_cast<std::ptrdiff_t>(run.block_offset), run.bytes,
                wanted.at(run.segment).begin() + static_cast<std::ptrdiff_t>(run.segment_offset));
  }
  EXPECT_EQ(copy_out(**first_view, 0, 2 * kMiB), wanted[0]);
  EXPECT_EQ(copy_out(**second_view, 0, 2 * kMiB), wanted[1]);
}

TEST_P(DeviceContract, RunsOutsideTheirSegmentOrBlockAreRefused) {
  const auto segment = filled(kMiB, 5);
  auto view = device().map(*segment);
  ASSERT_TRUE(view) << view.error().message;
  memory::View* const views[] = {view->get()};
  const std::uint64_t end = (*view)->bytes();
  const auto block = pattern(4096, 6);
  const std::array<memory::Run, 6> bad = {{
      {.segment_offset = end, .bytes = 1},
      {.segment_offset = end - 1, .bytes = 2},
      {.segment_offset = ~std::uint64_t{0}, .bytes = 2},
      {.bytes = 1, .segment = 1},
      {.block_offset = 4096, .bytes = 1},
      {.block_offset = 1, .bytes = 4096},
  }};
  for (const auto& run : bad) {
    auto writer = device().writer(views, kBlock);
    ASSERT_TRUE(writer) << writer.error().message;
    EXPECT_FALSE((*writer)->copy_in(block, std::span(&run, 1)))
        << run.segment << " " << run.segment_offset << " " << run.block_offset << " " << run.bytes;
  }
  auto writer = device().writer(views, kBlock);
  ASSERT_TRUE(writer) << writer.error().message;
  std::array<std::byte, 2> out = {};
  EXPECT_FALSE((*writer)->copy_out(0, end - 1, out));
  EXPECT_FALSE((*writer)->copy_out(1, 0, out));
  expect_pattern(**view, kMiB, 5);
}

TEST_P(DeviceContract, ManyBlocksThroughOneRingAllArrive) {
  constexpr std::uint64_t kBytes = 24 * kMiB;
  const auto segment = filled(kBytes, 7);  // copy_in of the fixture: 24 blocks by one writer
  auto view = device().map(*segment);
  ASSERT_TRUE(view) << view.error().message;
  expect_pattern(**view, kBytes, 7);
}

TEST_P(DeviceContract, ABlockThatIsNotStagedServesToo) {
  const auto segment = filled(kMiB, 8);
  auto view = device().map(*segment);
  ASSERT_TRUE(view) << view.error().message;
  memory::View* const views[] = {view->get()};
  auto writer = device().writer(views, kBlock);
  ASSERT_TRUE(writer) << writer.error().message;
  const auto bytes = pattern(kMiB, 9);
  const memory::Run run = {.bytes = bytes.size()};
  ASSERT_TRUE((*writer)->copy_in(bytes, std::span(&run, 1)));
  ASSERT_TRUE((*writer)->finish());
  expect_pattern(**view, kMiB, 9);
}

TEST_P(DeviceContract, ThreadsFillOneSegmentTogether) {
  constexpr std::uint64_t kPart = 2 * kMiB;
  constexpr unsigned kThreads = 4;
  const auto segment = filled(kThreads * kPart, 10);
  auto view = device().map(*segment);
  ASSERT_TRUE(view) << view.error().message;
  const auto bytes = pattern(kThreads * kPart, 11);
  {
    std::vector<std::jthread> threads;
    for (unsigned n = 0; n < kThreads; ++n) {
      threads.emplace_back(
          [&, n] { copy_in(**view, n * kPart, std::span(bytes).subspan(n * kPart, kPart)); });
    }
  }
  expect_pattern(**view, kThreads * kPart, 11);
}

}  // namespace
}  // namespace wc::contract
