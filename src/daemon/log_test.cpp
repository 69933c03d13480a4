#include "daemon/log.hpp"

#include <algorithm>
#include <array>
#include <string>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace wc::daemon {
namespace {

using ::testing::HasSubstr;

class LogTest : public ::testing::Test {
 protected:
  LogTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
    read_ = Fd(ends[0]);
    write_ = Fd(ends[1]);
    start_log({write_, Level::info, false});
  }
  ~LogTest() override {
    start_log({FdView(2), Level::error, false});
    set_log({});
  }

  std::string text() {
    std::string all;
    std::array<char, 4096> some{};
    for (ssize_t got = 0; (got = ::read(read_.get(), some.data(), some.size())) > 0;) {
      all.append(some.data(), static_cast<std::size_t>(got));
    }
    return all;
  }

  Fd read_;
  Fd write_;
};

TEST_F(LogTest, ALineSaysWhatHappened) {
  report(Level::info, "published \"{}\" ({} tensors)", "llama", 291);
  EXPECT_EQ(text(), "weightcache: published \"llama\" (291 tensors)\n");
}

TEST_F(LogTest, WhatIsBelowTheLevelIsLeftOut) {
  report(Level::debug, "noise");
  log(Level::debug, "noise from below");
  EXPECT_EQ(text(), "");
  log(Level::warning, "from below");
  EXPECT_EQ(text(), "weightcache: from below\n");
}

TEST_F(LogTest, UnderTheJournalALineBeginsWithItsPriority) {
  start_log({write_, Level::info, true});
  report(Level::error, "bad");
  report(Level::warning, "odd");
  EXPECT_EQ(text(), "<3>weightcache: bad\n<4>weightcache: odd\n");
}

TEST_F(LogTest, ACallSiteIsLimitedAndOthersAreNot) {
  for (int count = 0; count < 1000; ++count) report(Level::info, "again {}", count);
  const std::string lines = text();
  EXPECT_EQ(std::ranges::count(lines, '\n'), static_cast<std::ptrdiff_t>(kLinesPerWindow));
  report(Level::info, "another");
  EXPECT_EQ(text(), "weightcache: another\n");
}

TEST_F(LogTest, AFullPipeBlocksNobodyAndTheLossIsTold) {
  const std::string filler(4096, 'x');
  while (::write(write_.get(), filler.data(), filler.size()) > 0) continue;
  ::fcntl(write_.get(), F_SETFL, 0);  // as stderr is: a blocking descriptor
  report(Level::info, "lost");
  text();
  report(Level::info, "found");
  EXPECT_EQ(text(), "weightcache: found (1 lines before this one were lost)\n");
}

TEST_F(LogTest, APeersTextMakesNoLineOfItsOwn) {
  report(Level::info, "says \"{}\"", "a\nweightcache: b\x1b[2J");
  EXPECT_EQ(text(), "weightcache: says \"a weightcache: b [2J\"\n");
}

}  // namespace
}  // namespace wc::daemon
