#include "client/publication.hpp"

#include <array>
#include <cstring>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/attachment.hpp"
#include "client/mini_daemon_test.hpp"
#include "manifest/builder.hpp"
#include "memory/host/host_device.hpp"

namespace wc::client {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class PublicationTest : public testing::Test {
 protected:
  PublicationTest() : device_(*memory::open_host_device()), connection_(fake_.connect()) {}

  BeginOptions begin_options(const std::string& name) {
    BeginOptions options;
    options.name = name;
    options.device = device_;
    return options;
  }
  std::unique_ptr<Publication> granted(const std::string& name) {
    auto begun = begin(connection_, begin_options(name));
    EXPECT_TRUE(begun) << begun.error().message;
    auto* publication = begun ? std::get_if<std::unique_ptr<Publication>>(&*begun) : nullptr;
    EXPECT_NE(publication, nullptr);
    return publication == nullptr ? nullptr : std::move(*publication);
  }
  static std::vector<std::byte> manifest_for(const Publication& publication) {
    manifest::Builder builder;
    const std::array<std::int64_t, 1> shape = {100};
    std::uint32_t segment = 0;
    for (const auto* view : publication.views()) {
      EXPECT_TRUE(builder.add_segment({.bytes = view->bytes(), .used_bytes = view->bytes()}));
      EXPECT_TRUE(builder.add_tensor(
          {.name = "t" + std::to_string(segment), .shape = shape, .segment = segment}));
      ++segment;
    }
    manifest::Fingerprint fingerprint;
    fingerprint.source.source_id = "published by a test";
    EXPECT_TRUE(builder.set_fingerprint(fingerprint));
    return *builder.finish();
  }
  int abandoned() {
    const std::lock_guard lock(daemon_.mutex());
    return daemon_.abandoned;
  }
  void wait_for_abandon() {
    for (int n = 0; n < 2000 && abandoned() == 0; ++n) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(abandoned(), 1);
  }

  MiniDaemon daemon_;
  FakeDaemon fake_{daemon_.script()};
  std::shared_ptr<memory::Device> device_;
  std::shared_ptr<Connection> connection_;
};

TEST_F(PublicationTest, WhatIsWrittenIsWhatReadersGet) {
  auto publication = granted("new");
  ASSERT_NE(publication, nullptr);
  EXPECT_TRUE(publication->reserve(std::array<std::uint64_t, 2>{5000, 4096}));
  EXPECT_TRUE(publication->reserve(std::array<std::uint64_t, 1>{3 << 20}));
  ASSERT_EQ(publication->views().size(), 3U);
  EXPECT_EQ(publication->views()[0]->bytes(), 8192U);
  int value = 1;
  for (const auto* view : publication->views())
    std::memset(reinterpret_cast<void*>(view->address()), value++, view->bytes());
  const auto manifest = manifest_for(*publication);
  const auto published = publication->publish(manifest, {.fingerprint = "00"});
  ASSERT_TRUE(published) << published.error().message;
  EXPECT_EQ(published->entry->name, "new");
  EXPECT_TRUE(publication->views().empty());
  publication.reset();

  wire::fb::SelectorT selector;
  selector.name = "new";
  const auto attachment = attach(connection_, selector, {.device = always(device_)});
  ASSERT_TRUE(attachment) << attachment.error().message;
  for (std::uint32_t at = 0; at < 3; ++at) {
    const auto* bytes = reinterpret_cast<const std::byte*>((*attachment)->segment_address(at));
    EXPECT_EQ(bytes[0], std::byte(at + 1));
    EXPECT_EQ(bytes[(*attachment)->segment_bytes(at) - 1], std::byte(at + 1));
  }
  EXPECT_EQ(abandoned(), 0);
}

TEST_F(PublicationTest, ResidentContentIsToldInsteadOfGranted) {
  auto publication = granted("twice");
  EXPECT_TRUE(publication->reserve(std::array<std::uint64_t, 1>{4096}));
  ASSERT_TRUE(publication->publish(manifest_for(*publication), {}));
  const auto again = begin(connection_, begin_options("twice"));
  ASSERT_TRUE(again);
  ASSERT_TRUE(std::holds_alternative<wire::fb::EntryInfoT>(*again));
  EXPECT_EQ(std::get<wire::fb::EntryInfoT>(*again).name, "twice");
}

TEST_F(PublicationTest, DroppedOneIsAbandoned) {
  auto publication = granted("dropped");
  EXPECT_TRUE(publication->reserve(std::array<std::uint64_t, 1>{4096}));
  publication.reset();
  wait_for_abandon();
}

TEST_F(PublicationTest, ReasonOfAnAbandonIsTold) {
  const auto publication = granted("abandoned");
  EXPECT_TRUE(publication->abandon({Code::corrupt, "shard 2 is truncated", {}}));
  EXPECT_EQ(abandoned(), 1);
  {
    const std::lock_guard lock(daemon_.mutex());
    EXPECT_EQ(daemon_.last_reason, "shard 2 is truncated");
  }
  EXPECT_TRUE(publication->abandon({Code::corrupt, "again", {}}));
  EXPECT_EQ(publication->publish({}, {}).error().code, Code::invalid_argument);
  EXPECT_EQ(publication->reserve(std::array<std::uint64_t, 1>{1}).error().code,
            Code::invalid_argument);
  EXPECT_EQ(abandoned(), 1);
}

TEST_F(PublicationTest, RefusedPublicationIsOver) {
  const auto publication = granted("bad");
  EXPECT_TRUE(publication->reserve(std::array<std::uint64_t, 1>{4096}));
  const std::vector<std::byte> nonsense(100);
  const auto published = publication->publish(nonsense, {});
  ASSERT_FALSE(published);
  EXPECT_EQ(published.error().code, Code::corrupt);
  EXPECT_EQ(publication->publish(nonsense, {}).error().code, Code::invalid_argument);
}

TEST_F(PublicationTest, MemoryThatIsNotToBeHadIsTheDaemonsError) {
  const auto publication = granted("large");
  const auto reserved = publication->reserve(std::array<std::uint64_t, 1>{std::uint64_t{1} << 40});
  ASSERT_FALSE(reserved);
  EXPECT_EQ(reserved.error().code, Code::exhausted);
  EXPECT_TRUE(publication->views().empty());
  EXPECT_TRUE(publication->reserve(std::array<std::uint64_t, 1>{4096}));
}

TEST_F(PublicationTest, SizesThatCanNotBeAreTheCallersFault) {
  const auto publication = granted("sizes");
  EXPECT_EQ(publication->reserve({}).error().code, Code::invalid_argument);
  EXPECT_EQ(publication->reserve(std::array<std::uint64_t, 2>{4096, 0}).error().code,
            Code::invalid_argument);
  EXPECT_EQ(publication->reserve(std::array<std::uint64_t, 1>{~std::uint64_t{0}}).error().code,
            Code::invalid_argument);
  EXPECT_EQ(publication->reserve(std::vector<std::uint64_t>(241, 4096)).error().code,
            Code::invalid_argument);
}

TEST_F(PublicationTest, TransportThatTheDeviceCanNotDoIsUnsupported) {
  auto options = begin_options("transport");
  options.transport = memory::Transport::torch_ipc;
  const auto begun = begin(connection_, options);
  ASSERT_FALSE(begun);
  EXPECT_EQ(begun.error().code, Code::unsupported);
  EXPECT_EQ(begun.error().message, "\"cpu\" can't do torch_ipc: it can do host_fd");
  options.device.reset();
  EXPECT_EQ(begin(connection_, options).error().code, Code::invalid_argument);
}

TEST_F(PublicationTest, ProgressIsReportedNoMoreThanTenTimesASecond) {
  const auto publication = granted("progress");
  std::vector<std::thread> threads;
  const auto start = Clock::now();
  for (int n = 0; n < 4; ++n)
    threads.emplace_back([&] {
      for (std::uint64_t done = 0; Clock::now() - start < 250ms; ++done)
        publication->report_progress(done, 1000);
    });
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(publication->abandon({Code::cancelled, "enough", {}}));
  const std::lock_guard lock(daemon_.mutex());
  EXPECT_GE(daemon_.reports, 2);
  EXPECT_LE(daemon_.reports, 4);
}

TEST_F(PublicationTest, ChildForkedWhileFillingDoesNotKeepItFromBeingSealed) {
  const auto publication = granted("forked");
  EXPECT_TRUE(publication->reserve(std::array<std::uint64_t, 1>{4096}));
  std::memset(reinterpret_cast<void*>(publication->views()[0]->address()), 3, 4096);
  int ends[2] = {};
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte = 0;
    [[maybe_unused]] const auto count = ::read(ends[0], &byte, 1);
    ::_exit(0);
  }
  const auto published = publication->publish(manifest_for(*publication), {});
  EXPECT_TRUE(published) << published.error().message;
  ASSERT_EQ(::write(ends[1], "x", 1), 1);
  int state = 0;
  ASSERT_EQ(::waitpid(child, &state, 0), child);
  const Fd read_end(ends[0]);
  const Fd write_end(ends[1]);
}

TEST_F(PublicationTest, ForkedChildAbandonsNothing) {
  auto publication = granted("child");
  EXPECT_TRUE(publication->reserve(std::array<std::uint64_t, 1>{4096}));
  const pid_t child = ::fork();
  if (child == 0) {
    publication.reset();
    ::_exit(0);
  }
  int state = 0;
  ASSERT_EQ(::waitpid(child, &state, 0), child);
  EXPECT_EQ(state, 0);
  EXPECT_TRUE(publication->publish(manifest_for(*publication), {}));
  EXPECT_EQ(abandoned(), 0);
}

}  // namespace
}  // namespace wc::client
