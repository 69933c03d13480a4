#include "tests/contract/contract_test.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "tests/contract/child.hpp"
#include "tests/contract/pattern.hpp"

namespace wc::contract {

std::unique_ptr<memory::Segment> DeviceContract::filled(std::uint64_t bytes, std::uint64_t seed) {
  auto segment = device_->create(bytes);
  EXPECT_TRUE(segment) << segment.error().message;
  auto view = device_->map(**segment);
  EXPECT_TRUE(view) << view.error().message;
  copy_in(**view, 0, pattern(bytes, seed));
  return std::move(*segment);
}

void DeviceContract::copy_in(memory::View& view, std::uint64_t offset,
                             std::span<const std::byte> bytes) {
  memory::View* const views[] = {&view};
  auto writer = device_->writer(views, kBlock);
  ASSERT_TRUE(writer) << writer.error().message;
  for (std::uint64_t at = 0; at < bytes.size(); at += kBlock) {
    const auto piece = bytes.subspan(at, std::min<std::uint64_t>(kBlock, bytes.size() - at));
    auto staged = (*writer)->stage(piece.size());
    ASSERT_TRUE(staged) << staged.error().message;
    std::span<const std::byte> block = piece;
    if (!staged->empty()) {
      ASSERT_GE(staged->size(), piece.size());
      std::ranges::copy(piece, staged->begin());
      block = *staged;
    }
    const memory::Run run = {.segment_offset = offset + at, .bytes = piece.size()};
    const auto copied = (*writer)->copy_in(block, std::span(&run, 1));
    ASSERT_TRUE(copied) << copied.error().message;
  }
  const auto finished = (*writer)->finish();
  ASSERT_TRUE(finished) << finished.error().message;
}

std::vector<std::byte> DeviceContract::copy_out(memory::View& view, std::uint64_t offset,
                                                std::uint64_t bytes) {
  memory::View* const views[] = {&view};
  auto writer = device_->writer(views, kBlock);
  EXPECT_TRUE(writer) << writer.error().message;
  std::vector<std::byte> seen(bytes);
  if (!writer) return seen;
  const auto copied = (*writer)->copy_out(0, offset, seen);
  EXPECT_TRUE(copied) << copied.error().message;
  return seen;
}

void DeviceContract::expect_pattern(memory::View& view, std::uint64_t bytes, std::uint64_t seed) {
  const auto seen = copy_out(view, 0, bytes);
  const auto wanted = pattern(bytes, seed);
  const auto differ = std::ranges::mismatch(seen, wanted);
  EXPECT_EQ(differ.in1, seen.end()) << "at byte " << differ.in1 - seen.begin();
}

std::uint64_t DeviceContract::free_bytes() {
  if (GetParam().free_bytes) return GetParam().free_bytes();
  const auto free = device_->free_bytes();
  EXPECT_TRUE(free) << free.error().message;
  return free ? *free : 0;
}

bool DeviceContract::comes_back_to(std::uint64_t wanted) {
  const std::uint64_t least = wanted - std::min(wanted, GetParam().noise_bytes);
  constexpr int kTries = 100;
  for (int n = 0; n < kTries; ++n) {
    if (free_bytes() >= least) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return false;
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator folder("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(folder), end(folder)));
}

}  // namespace wc::contract

int main(int argc, char** argv) {
  if (const auto status = wc::contract::run_child(argc, argv)) return *status;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
