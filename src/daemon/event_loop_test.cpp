#include "daemon/event_loop.hpp"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

namespace wc::daemon {
namespace {

using namespace std::chrono_literals;

class EventLoopTest : public ::testing::Test {
 protected:
  static EventLoop make() {
    auto loop = EventLoop::create();
    EXPECT_TRUE(loop);
    return std::move(*loop);
  }
  static Fd event(unsigned value) { return Fd(::eventfd(value, EFD_CLOEXEC | EFD_NONBLOCK)); }

  EventLoop loop_ = make();
};

TEST_F(EventLoopTest, AReadyDescriptorIsReportedUntilItIsNot) {
  const Fd ready = event(1);
  int calls = 0;
  CallHandler handler([&](std::uint32_t events) {
    EXPECT_EQ(events, static_cast<std::uint32_t>(EPOLLIN));
    if (++calls == 3) loop_.stop();
  });
  auto watch = loop_.watch(ready, EPOLLIN, handler);
  ASSERT_TRUE(watch);
  ASSERT_TRUE(loop_.run());
  EXPECT_EQ(calls, 3);
}

TEST_F(EventLoopTest, DeadlinesFireInTheirOrderAndOnce) {
  std::string order;
  const auto now = Clock::now();
  auto second = loop_.at(now + 4ms, [&] { order += '2'; });
  auto first = loop_.at(now + 2ms, [&] { order += '1'; });
  auto past = loop_.at(now - 1s, [&] { order += '0'; });
  auto never = loop_.at(now + 3ms, [&] { order += 'x'; });
  never.reset();
  auto last = loop_.at(now + 6ms, [&] { loop_.stop(); });
  EXPECT_TRUE(first.armed());
  ASSERT_TRUE(loop_.run());
  EXPECT_EQ(order, "012");
  EXPECT_FALSE(first.armed());
}

TEST_F(EventLoopTest, ADeadlineIsNotReportedBeforeItsTime) {
  const auto when = Clock::now() + 5ms;
  auto timer = loop_.at(when, [&] {
    EXPECT_GE(Clock::now(), when);
    loop_.stop();
  });
  ASSERT_TRUE(loop_.run());
}

TEST_F(EventLoopTest, AnEndedWatchGetsNoEventThatWasFetchedBefore) {
  const Fd one = event(1);
  const Fd two = event(1);
  EventLoop::Watch first;
  EventLoop::Watch second;
  int calls = 0;
  CallHandler handler_one([&](std::uint32_t) {
    ++calls;
    second.reset();
  });
  CallHandler handler_two([&](std::uint32_t) {
    ++calls;
    first.reset();
  });
  first = *loop_.watch(one, EPOLLIN, handler_one);
  second = *loop_.watch(two, EPOLLIN, handler_two);
  loop_.later([&] { loop_.stop(); });
  ASSERT_TRUE(loop_.run());
  EXPECT_EQ(calls, 1);  // whichever came first ended the other
}

TEST_F(EventLoopTest, ASlotThatIsUsedAgainGetsNoEventOfItsFormerUser) {
  const Fd one = event(1);
  const Fd two = event(1);
  const Fd silent = event(0);
  const Fd other = event(0);
  EventLoop::Watch first;
  EventLoop::Watch second;
  CallHandler quiet([](std::uint32_t) { ADD_FAILURE() << "it watches what is not ready"; });
  CallHandler handler([&](std::uint32_t) {
    first.reset();
    second.reset();  // both slots are free, and taken at once
    first = *loop_.watch(silent, EPOLLIN, quiet);
    second = *loop_.watch(other, EPOLLIN, quiet);
  });
  first = *loop_.watch(one, EPOLLIN, handler);
  second = *loop_.watch(two, EPOLLIN, handler);
  loop_.later([&] { loop_.stop(); });
  ASSERT_TRUE(loop_.run());
}

TEST_F(EventLoopTest, WhatIsLaterRunsAfterTheTurnAndInOrder) {
  const Fd ready = event(1);
  std::string order;
  EventLoop::Watch watch;
  CallHandler handler([&](std::uint32_t) {
    loop_.later([&] {
      order += 'a';
      loop_.later([&] { loop_.stop(); });
    });
    loop_.later([&] { order += 'b'; });
    order += '.';
    watch.reset();
  });
  watch = *loop_.watch(ready, EPOLLIN, handler);
  ASSERT_TRUE(loop_.run());
  EXPECT_EQ(order, ".ab");
}

TEST_F(EventLoopTest, NothingToDoMeansNoWakeUp) {
  const Fd silent = event(0);
  CallHandler handler([](std::uint32_t) { ADD_FAILURE() << "nothing was ready"; });
  auto watch = loop_.watch(silent, EPOLLIN, handler);
  auto timer = loop_.at(Clock::now() + 200ms, [&] { loop_.stop(); });
  rusage before{};
  ::getrusage(RUSAGE_THREAD, &before);
  ASSERT_TRUE(loop_.run());
  rusage after{};
  ::getrusage(RUSAGE_THREAD, &after);
  EXPECT_LE(after.ru_nvcsw - before.ru_nvcsw, 2);
}

TEST_F(EventLoopTest, ABadDescriptorIsAnError) {
  CallHandler handler([](std::uint32_t) {});
  const auto watch = loop_.watch(FdView(-1), EPOLLIN, handler);
  ASSERT_FALSE(watch);
  EXPECT_EQ(watch.error().origin, "EBADF");
}

}  // namespace
}  // namespace wc::daemon
