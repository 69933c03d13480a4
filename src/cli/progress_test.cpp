#include "cli/progress.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/text.hpp"

namespace wc::cli {
namespace {

wc_progress half_way() {
  auto progress = sized<wc_progress>();
  progress.done_bytes = std::uint64_t{4} << 30;
  progress.total_bytes = std::uint64_t{8} << 30;
  progress.bytes_per_s = 2'000'000'000;
  progress.elapsed_ns = 2'100'000'000;
  return progress;
}

TEST(ProgressTest, TheBarTellsShareBytesRateAndTimeLeft) {
  EXPECT_EQ(
      bar_line(half_way(), "loading", 100),
      "loading [===============               ]  50%  4.0 GiB of 8.0 GiB, 2.0 GB/s, 3.0 s left");
}

TEST(ProgressTest, TheBarFitsEveryTerminal) {
  for (std::size_t columns = 1; columns < 120; ++columns) {
    EXPECT_LE(cells(bar_line(half_way(), "loading", columns)), columns);
  }
}

TEST(ProgressTest, PlainLinesAreSentences) {
  EXPECT_EQ(plain_line(half_way(), "loading"),
            "loading: 50%, 4.0 GiB of 8.0 GiB, 2.0 GB/s, 3.0 s left");
}

TEST(ProgressTest, WaitingForAnotherLoaderIsTold) {
  auto progress = half_way();
  progress.waiting = 1;
  EXPECT_EQ(plain_line(progress, "loading").find("waiting for another process that loads it"), 0U);
  progress.total_bytes = 0;
  EXPECT_EQ(bar_line(progress, "loading", 80), "waiting for another process that loads it");
}

TEST(ProgressTest, JsonLinesAreDocuments) {
  const auto document = nlohmann::json::parse(json_line(half_way()));
  EXPECT_EQ(document["done_bytes"], std::uint64_t{4} << 30);
  EXPECT_EQ(document["total_bytes"], std::uint64_t{8} << 30);
  EXPECT_EQ(document["bytes_per_s"], 2'000'000'000);
  EXPECT_EQ(document["waiting"], false);
  EXPECT_DOUBLE_EQ(document["elapsed_s"], 2.1);
}

TEST(ProgressTest, MoreDoneThanExpectedIsAllOfIt) {
  auto progress = half_way();
  progress.done_bytes = progress.total_bytes + 1;
  EXPECT_NE(bar_line(progress, "loading", 100).find("100%"), std::string::npos);
}

TEST(ProgressTest, TheModeFollowsTheTerminalUnlessAsked) {
  EXPECT_EQ(progress_mode("", {.interactive = true}), ProgressMode::bar);
  EXPECT_EQ(progress_mode("", {}), ProgressMode::plain);
  EXPECT_EQ(progress_mode("none", {.interactive = true}), ProgressMode::none);
  EXPECT_EQ(progress_mode("json", {.interactive = true}), ProgressMode::json);
}

}  // namespace
}  // namespace wc::cli
